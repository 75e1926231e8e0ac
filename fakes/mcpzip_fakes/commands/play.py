"""``mcpzip-fake SCENARIO``: play a scenario, show one, list them; play Gemini or an embedding server."""

import sys
from pathlib import Path

import click

from mcpzip.model.errors import McpzipError
from mcpzip_fakes import endpoint_settings, stdio_server
from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.commands.completion import complete_playable, complete_shipped
from mcpzip_fakes.faults import KINDS
from mcpzip_fakes.scenario import ERAS, SHIPPED, Scenario, find, names
from mcpzip_fakes.sdk import check_sdk


@click.command("play", cls=SafeCommand)
@click.argument("scenario", required=False, shell_complete=complete_playable)
@click.option("--transport", type=click.Choice(["stdio", "http", "sse"]), default="stdio", show_default=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port of a server over HTTP; 0 is any free port.",
)
@click.option("--era", type=click.Choice(list(ERAS)), help="Speak only this era of the protocol.")
@click.option(
    "--record", type=click.Path(dir_okay=False), help="Append every message to this file, as JSON lines."
)
@click.option("--stateless", is_flag=True, help="http: keep no sessions.")
@click.option("--json-response", is_flag=True, help="http: answer with JSON instead of event streams.")
@click.option(
    "--settings",
    "settings_file",
    type=click.Path(dir_okay=False),
    help="gemini, embeddings: a TOML file with its answers and faults.",
)
@click.option("--list", "listing", is_flag=True, help="List the shipped scenarios and the faults.")
@click.option(
    "--show",
    metavar="NAME",
    help="Print the file of a shipped scenario, to copy and change.",
    shell_complete=complete_shipped,
)
def play(
    scenario: str | None,
    transport: str,
    port: int,
    era: str | None,
    record: str | None,
    stateless: bool,
    json_response: bool,
    settings_file: str | None,
    listing: bool,
    show: str | None,
) -> None:
    """Run the MCP server that SCENARIO describes: the name of a shipped one, or a TOML or JSON file.

    SCENARIO can also be "gemini" or "embeddings", which are no MCP servers. Servers over HTTP listen on
    127.0.0.1 and print one line, "listening URL", when they accept connections.
    """
    try:
        if listing:
            _list()
        elif show is not None:
            click.echo(Path(find(show)).read_text(encoding="utf-8"), nl=False)
        elif scenario is None:
            raise click.UsageError("name a scenario, or see --list")
        elif scenario in endpoint_settings.ENDPOINTS:
            endpoint_settings.run(scenario, settings_file, record, port)
        elif settings_file is not None:
            raise click.UsageError("--settings is for gemini and embeddings")
        else:
            if transport == "stdio" and port:
                raise click.UsageError("--port is for http and sse: add --transport http")
            played = Scenario.load(scenario)
            played = (played.with_era(era) if era else played).over(transport)
            sys.exit(_play(played, transport, port, record, stateless, json_response))
    except McpzipError as error:
        raise click.ClickException(str(error)) from error


def _play(
    played: Scenario, transport: str, port: int, record: str | None, stateless: bool, json_response: bool
) -> int:
    if transport == "stdio":
        return stdio_server.run(played, record)
    check_sdk()
    from mcpzip_fakes import serving  # imports the SDK, which takes long

    serving.run(played, record, transport, port, stateless=stateless, json_response=json_response)
    return 0


def _list() -> None:
    for name in names():
        shipped = Scenario.load(Path(SHIPPED) / f"{name}.toml")
        tools = len(shipped.all_tools())
        width = 40 if "/" in name else 20
        click.echo(f"{name:{width}} {tools:5,} tool{' ' if tools == 1 else 's'}  {shipped.about}")
    for name, about in endpoint_settings.ENDPOINTS.items():
        click.echo(f"{name:20}     – {about}")
    click.echo("\nFaults, for the [[faults]] of a scenario (docs/fakes.md):")
    for kind, row in KINDS.items():
        click.echo(f"{kind:20} {row.about}")
