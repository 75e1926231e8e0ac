"""``mcpzip-fake record``: stand between a client and a real server, and write a cassette."""

import os

import click

from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.recording import stdio
from mcpzip_fakes.recording.report import report, tell
from mcpzip_fakes.recording.secrets import known_secrets
from mcpzip_fakes.recording.tape import Tape


@click.command("record", cls=SafeCommand)
@click.argument("cassette", type=click.Path(dir_okay=False))
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--mask", "paths", metavar="PATH", multiple=True, help="Mask what is at this path of the messages, too."
)
@click.option(
    "--secret", "names", metavar="NAME", multiple=True, help="Mask the value of this variable, too."
)
@click.option("--overwrite", is_flag=True, help="Replace the cassette instead of adding a session to it.")
def record(
    cassette: str, command: tuple[str, ...], paths: tuple[str, ...], names: tuple[str, ...], overwrite: bool
) -> None:
    """Record what a client and a real server say to each other into the file CASSETTE.

    It is a server like the real one: put it into the config of a client, and use that as always. Every
    message passes unchanged. An existing cassette gets another session.

    \b
    mcpzip-fake record time.toml -- mcp-server-time --local-timezone UTC
    mcpzip-fake record pay.toml --mask params.arguments.pin -- npx pay-server

    Secrets are replaced by masks before anything is written: values of variables whose names say so, of
    members and headers that are named like a secret, what looks like an API key, and what you add with
    --secret and --mask. A PATH has a * for any name or index: result.content.*.text. At the end, stderr says
    what was masked.
    """
    if not command:
        raise click.UsageError("say after -- which server to run")
    tape = Tape(cassette, "stdio", known_secrets(os.environ, names), paths, tell, anew=overwrite)
    code = stdio.record(command, tape)
    report(cassette, tape.masked)
    stdio.exit_as(code)
