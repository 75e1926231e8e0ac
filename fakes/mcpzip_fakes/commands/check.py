"""``mcpzip-fake check CASSETTE -- COMMAND``: a contract test of a real server."""

import os
import sys
from collections.abc import Sequence
from typing import cast

import click
import msgspec

from mcpzip.cassettes.cassette import MASK
from mcpzip.model import sanitize
from mcpzip.model.errors import McpzipError
from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.commands.server_options import header
from mcpzip_fakes.drift.drift import SEVERITIES, Area, Report, Severity
from mcpzip_fakes.drift.server import check_command, check_url
from mcpzip_fakes.drift.settings import TIMEOUT, Settings


class _WrongUse(click.ClickException):
    """Nothing could be compared."""

    exit_code = 2


@click.command("check", cls=SafeCommand)
@click.argument("cassette", type=click.Path())
@click.argument("command", nargs=-1, metavar="[-- COMMAND…]")
@click.option("--url", help="Check the server at this URL instead of a command.")
@click.option(
    "--transport",
    type=click.Choice(["http", "sse"]),
    help="Of the server at --url. [default: the recorded one; sse if the path ends with /sse, else http]",
)
@click.option("-H", "--header", "headers", multiple=True, metavar="'Name: value'", help="A header for --url.")
@click.option("--only", type=click.Choice(["catalog", "answers"]), help="Report only drift of this kind.")
@click.option("--shape", is_flag=True, help="Compare types and keys of answers, not values: for live data.")
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="Ignore what stands there in results, such as content.*.text.",
)
@click.option("--call", multiple=True, metavar="TOOL", help="Call this tool though it may do more than read.")
@click.option("--call-all", is_flag=True, help="Send every request, whatever it does.")
@click.option(
    "--unmask", multiple=True, metavar="N=VARIABLE", help="Send this variable's value for [masked N]."
)
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=TIMEOUT, show_default=True, help="Seconds for an answer."
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="added",
    show_default=True,
    help="The least severity that makes the exit code 1.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def check(
    cassette: str,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    headers: tuple[str, ...],
    only: str | None,
    shape: bool,
    ignore: tuple[str, ...],
    call: tuple[str, ...],
    call_all: bool,
    unmask: tuple[str, ...],
    timeout: float,
    fail_on: str,
    as_json: bool,
) -> None:
    """Play the requests of CASSETTE against a real server, and report how it differs from the recorded one.

    \b
    mcpzip-fake check time.toml -- uvx mcp-server-time
    mcpzip-fake check tracker.toml --url https://tracker.example/mcp -H "Authorization: Bearer $TOKEN"

    Tools that may do more than read (without readOnlyHint) are not called, unless you say so. Exit code: 0
    for no drift, 1 for drift, 2 if nothing could be compared.
    """
    if bool(command) == (url is not None):
        raise click.UsageError("give the server's command after --, or its --url")
    settings = Settings(
        only=cast(Area | None, only),
        shape=shape,
        ignore=ignore,
        call=call,
        call_all=call_all,
        timeout=timeout,
        unmasked=dict(map(_unmasked, unmask)),
    )
    try:
        report = _report(cassette, command, url, transport, headers, settings)
    except McpzipError as error:
        raise _WrongUse(str(error)) from error
    if not report.sent and not report.drifts:
        reason = "no request in it was sent, so nothing was compared; record a session, or allow calls"
        raise _WrongUse(f"{cassette}: {reason} (--call, --call-all)")
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(report.as_json()), indent=2).decode()
        click.echo(sanitize.json_text(text))
    else:
        for line in report.lines():
            click.echo(line)
    sys.exit(1 if report.at_least(cast(Severity, fail_on)) else 0)


def _report(
    cassette: str,
    command: Sequence[str],
    url: str | None,
    transport: str | None,
    headers: Sequence[str],
    settings: Settings,
) -> Report:
    if url is None:
        if headers or transport:
            raise click.UsageError("--header and --transport are for --url")
        return check_command(cassette, command, settings)
    try:
        return check_url(cassette, url, settings, headers=dict(map(header, headers)), transport=transport)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _unmasked(text: str) -> tuple[str, str]:
    number, equals, variable = text.partition("=")
    if not equals or not number.isdecimal():
        raise click.UsageError("write --unmask as N=VARIABLE, with the number of the mask")
    value = os.environ.get(variable)
    if value is None:
        raise click.UsageError(f"the variable {variable} is not set")
    return MASK.format(number), value
