"""``mcpzip-fake record``: stand between a client and a real server, and write a cassette."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

import click

from mcpzip.cassettes.environment_secrets import known_secrets
from mcpzip.cassettes.tape import Tape
from mcpzip.model.errors import ConfigError
from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.recording import stdio
from mcpzip_fakes.recording.report import report, tell


@click.command("record", cls=SafeCommand)
@click.argument("cassette", type=click.Path(dir_okay=False))
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="Record the server at this URL instead of a command.")
@click.option(
    "--transport",
    type=click.Choice(["http", "sse"]),
    help="Of the server at --url. [default: sse if the URL's path ends with /sse, else http]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With --url: the port of 127.0.0.1 for clients; 0 is any free port.",
)
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="With --url: send this header to the server. Its value is masked.",
)
@click.option(
    "--mask", "paths", metavar="PATH", multiple=True, help="Mask what is at this path of the messages, too."
)
@click.option(
    "--secret", "names", metavar="NAME", multiple=True, help="Mask the value of this variable, too."
)
@click.option("--overwrite", is_flag=True, help="Replace the cassette instead of adding a session to it.")
def record(
    cassette: str,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    port: int,
    headers: tuple[str, ...],
    paths: tuple[str, ...],
    names: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Record what a client and a real server say to each other into the file CASSETTE.

    It is a server like the real one: put it into the config of a client, and use that as always. Every
    message passes unchanged. An existing cassette gets another session.

    \b
    mcpzip-fake record time.toml -- mcp-server-time --local-timezone UTC
    mcpzip-fake record pay.toml --mask params.arguments.pin -- npx pay-server
    mcpzip-fake record docs.toml --url https://docs.example.com/mcp --header "X-Api-Key: $KEY"

    With --url it prints one line, "listening URL", for the config of the client, and records until it is
    ended (Ctrl-C).

    Secrets are replaced by masks before anything is written: values of variables whose names say so, of
    members and headers that are named like a secret, what looks like an API key, and what you add with
    --secret and --mask. A PATH has a * for any name or index: result.content.*.text. At the end, stderr says
    what was masked.
    """
    secrets = known_secrets(os.environ, names)
    if url is None:
        _refuse(command, transport, port, headers)
        tape = Tape(cassette, "stdio", secrets, paths, tell, anew=overwrite)
        code = stdio.record(command, tape)
        report(cassette, tape.masked)
        stdio.exit_as(code)
        return
    if command:
        raise click.UsageError("say either --url or, after --, a command")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ConfigError("--url", "", "it is no URL of a server over HTTP", "say http://… or https://…")
    given = dict(_header(each) for each in headers)
    secrets |= {value: f"it is the value of the header {name}" for name, value in given.items()}
    kind = transport or ("sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http")
    tape = Tape(cassette, "sse" if kind == "sse" else "http", secrets, paths, tell, anew=overwrite)
    try:
        from mcpzip_fakes.recording import http
    except ModuleNotFoundError as error:
        package = str(error.name)
        raise ConfigError(
            "--url", "", f"it needs the package {package}", "run: pip install 'mcpzip[fakes]'"
        ) from error
    http.serve(url, given, tape, port, sse=kind == "sse")
    report(cassette, tape.masked)


def _refuse(command: Sequence[str], transport: str | None, port: int, headers: Sequence[str]) -> None:
    """Raise an error for options that don't go with a command."""
    if not command:
        raise click.UsageError("say after -- which server to run, or --url")
    for option, given in (("--transport", transport), ("--port", port), ("--header", headers)):
        if given:
            raise click.UsageError(f"{option} is for --url")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not value.strip():
        raise click.UsageError("--header has the form 'NAME: VALUE'")
    return name.strip().lower(), value.strip()
