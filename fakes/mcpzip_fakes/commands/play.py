"""``mcpzip-fake SCENARIO``: play a scenario or a cassette, show a scenario, list them; play Gemini or an
embedding server.
"""

import gc
import os
import sys
from pathlib import Path

import click
import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip_fakes import endpoint_settings, stdio_server
from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.commands.completion import complete_playable, complete_shipped
from mcpzip_fakes.commands.server_options import check_url, header
from mcpzip_fakes.faults import KINDS
from mcpzip_fakes.scenario import ERAS, SHIPPED, Replay, Scenario, find, names
from mcpzip_fakes.sdk import check_sdk

_MASK = "[masked "


class _Timing(click.ParamType[float | None]):
    """``none``, ``recorded`` or a factor; as the factor of the recorded times, None for ``none``."""

    name = "timing"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """As click does."""
        if value in ("none", "recorded"):
            return None if value == "none" else 1.0
        try:
            return Replay(cassette="", timing=float(value)).timing
        except ValueError:
            self.fail(f"{value!r} is not none, recorded or a factor such as 0.5", param, ctx)


@click.command("play", cls=SafeCommand)
@click.argument("scenario", required=False, shell_complete=complete_playable)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    help="[default: stdio; with --url: http]",
)
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
@click.option(
    "--timing",
    type=_Timing(),
    metavar="none|recorded|FACTOR",
    help="A cassette: when answers come. At once, in the recorded order (none, the default); after the"
    " recorded times; or after those times a factor.",
)
@click.option(
    "--new",
    is_flag=True,
    help="A cassette on stdio or http: pass requests that are not in it to the real server, and add them to"
    " it. The server is the recorded one, or the command after --, or that at --url.",
)
@click.option("--url", help="--new: the URL of the real server.")
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="--new over HTTP: send this header to the real server. Its value is masked.",
)
@click.option(
    "--mask",
    "masks",
    metavar="PATH",
    multiple=True,
    help="--new: mask what is at this path of messages, too.",
)
@click.option(
    "--secret", "secrets", metavar="NAME", multiple=True, help="--new: mask this variable's value, too."
)
@click.option(
    "--ignore",
    "ignored",
    metavar="PATH",
    multiple=True,
    help="A cassette: what is at this path of requests doesn't count, such as arguments.now.",
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
    command: tuple[str, ...],
    transport: str | None,
    port: int,
    era: str | None,
    record: str | None,
    timing: float | None,
    new: bool,
    url: str | None,
    headers: tuple[str, ...],
    masks: tuple[str, ...],
    secrets: tuple[str, ...],
    ignored: tuple[str, ...],
    stateless: bool,
    json_response: bool,
    settings_file: str | None,
    listing: bool,
    show: str | None,
) -> None:
    """Run the MCP server that SCENARIO describes: the name of a shipped one, or a TOML or JSON file.

    A TOML file can also be a cassette: then the server answers as the recorded one did. A request that is not
    in the cassette fails, and the error names the nearest recorded one and what differs.

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
            transport = transport or ("http" if url else "stdio")
            if transport == "stdio" and port:
                raise click.UsageError("--port is for http and sse: add --transport http")
            if command and not new:
                raise click.UsageError(f"nothing can follow {scenario!r} but a command after --, with --new")
            if not new and (url or headers or masks or secrets):
                raise click.UsageError("--url, --header, --mask and --secret are for --new")
            real = {"command": command, "url": url or "", "headers": dict(map(header, headers))}
            if new:
                _check_server(transport, command, url, headers)
                _begin(scenario, command, url, masks, secrets)
            played = Scenario.load(scenario)
            played = (played.with_era(era) if era else played).over(transport)
            if timing is not None:
                played = _with_replay(played, "--timing", timing=timing)
            if ignored:
                played = _with_replay(played, "--ignore", ignore=ignored)
            if new:
                played = _with_replay(played, "--new", new=True, mask=masks, secret=secrets, **real)
                _check_recorded(played.replay, transport)
            sys.exit(_play(played, transport, port, record, stateless, json_response))
    except McpzipError as error:
        raise click.ClickException(str(error)) from error


def _with_replay(played: Scenario, option: str, **keys: object) -> Scenario:
    if played.replay is None:
        raise click.UsageError(f"{option} is for cassettes, and this is a scenario")
    return msgspec.structs.replace(played, replay=msgspec.structs.replace(played.replay, **keys))


def _check_server(
    transport: str, command: tuple[str, ...], url: str | None, headers: tuple[str, ...]
) -> None:
    """Raise UsageError if this can't be the real server."""
    if transport == "sse":
        raise click.UsageError("--new is for cassettes on stdio and http")
    if transport == "stdio" and (url or headers):
        raise click.UsageError("--url and --header are for --transport http")
    if transport == "http" and command:
        raise click.UsageError(
            "a command is for --transport stdio; say the URL of the real server with --url"
        )
    if url:
        check_url(url)


def _begin(
    cassette: str, command: tuple[str, ...], url: str | None, masks: tuple[str, ...], secrets: tuple[str, ...]
) -> None:
    """Create a cassette that isn't there yet."""
    if (command or url) and cassette.endswith(".toml") and not os.path.exists(cassette):
        from mcpzip.cassettes.cassette import Cassette
        from mcpzip.cassettes.environment_secrets import known_secrets
        from mcpzip.cassettes.files import save
        from mcpzip.cassettes.masking import Masker

        masker = Masker(known_secrets(os.environ, secrets), masks, lambda masked: None)
        name = os.path.splitext(os.path.basename(cassette))[0]
        if url:
            empty = Cassette(name=name, transport="http", url=masker.url(url, "the URL"))
        else:
            empty = Cassette(name=name, command=masker.command(command, "the command"))
        save(cassette, empty)


def _check_recorded(replay: Replay | None, transport: str) -> None:
    """Raise UsageError if the real server isn't known, or the cassette was recorded otherwise."""
    assert replay is not None
    from mcpzip_fakes.replay.loaded import recorded_server

    recorded, command, url = recorded_server(replay.cassette)
    if recorded != transport:
        raise click.UsageError(f"the cassette was recorded over {recorded}: add --transport {recorded}")
    if transport == "http" and not replay.url and (not url or _MASK in url):
        raise click.UsageError("the URL of the real server is not in the cassette: say it with --url")
    if (
        transport == "stdio"
        and not replay.command
        and (not command or any(_MASK in word for word in command))
    ):
        raise click.UsageError("the command of the real server is not in the cassette: say it after --")


def _play(
    played: Scenario, transport: str, port: int, record: str | None, stateless: bool, json_response: bool
) -> int:
    if transport == "stdio":
        return stdio_server.run(played, record)
    check_sdk()
    gc.disable()  # an import makes many objects and no garbage
    from mcpzip_fakes import serving  # imports the SDK, which takes long

    gc.freeze()
    gc.enable()
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
