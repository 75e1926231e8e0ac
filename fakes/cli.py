"""``mcpzip-fake``: play a scenario, show one, list them."""

import sys
from pathlib import Path

import click

from fakes import stdio
from fakes.errors import ScenarioError
from fakes.faults import KINDS
from fakes.scenario import ERAS, SHIPPED, Scenario, find, names


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("scenario", required=False)
@click.option("--transport", type=click.Choice(["stdio", "http", "sse"]), default="stdio", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="For http and sse; 0 takes a free one."
)
@click.option("--era", type=click.Choice(list(ERAS)), help="Speak only this era of the protocol.")
@click.option(
    "--record", type=click.Path(dir_okay=False), help="Append every message to this file, as JSON lines."
)
@click.option("--stateless", is_flag=True, help="http: keep no sessions.")
@click.option("--json-response", is_flag=True, help="http: answer with JSON instead of event streams.")
@click.option("--list", "listing", is_flag=True, help="List the shipped scenarios and the faults there are.")
@click.option("--show", metavar="NAME", help="Print the file of a shipped scenario, to start one's own from.")
def main(
    scenario: str | None,
    transport: str,
    port: int,
    era: str | None,
    record: str | None,
    stateless: bool,
    json_response: bool,
    listing: bool,
    show: str | None,
) -> None:
    """Be the MCP server that SCENARIO describes: the name of a shipped one, or a TOML or JSON file.

    http and sse listen on 127.0.0.1 and print one line, "listening URL", when they do.
    """
    try:
        if listing:
            _list()
        elif show is not None:
            click.echo(find(show).read_text(encoding="utf-8"), nl=False)
        elif scenario is None:
            raise click.UsageError("name a scenario, or see --list")
        else:
            if transport == "stdio" and port:
                raise click.UsageError("--port is for http and sse: add --transport http")
            told = Scenario.load(scenario)
            told = (told.with_era(era) if era else told).over(transport)
            sys.exit(_play(told, transport, port, record, stateless, json_response))
    except ScenarioError as error:
        raise click.ClickException(str(error)) from error


def _play(
    told: Scenario, transport: str, port: int, record: str | None, stateless: bool, json_response: bool
) -> int:
    if transport == "stdio":
        return stdio.run(told, record)
    from fakes import serving  # brings the SDK, which takes its time

    serving.run(told, record, transport, port, stateless=stateless, json_response=json_response)
    return 0


def _list() -> None:
    for name in names():
        told = Scenario.load(Path(SHIPPED) / f"{name}.toml")
        tools = len(told.all_tools())
        click.echo(f"{name:20} {tools:4} tool{' ' if tools == 1 else 's'}  {told.about}")
    click.echo("\nFaults, for the [[faults]] of a scenario (docs/fakes.md):")
    for kind, row in KINDS.items():
        click.echo(f"{kind:20} {row.about}")
