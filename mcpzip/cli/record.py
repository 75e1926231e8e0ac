"""`mcpzip record`: serve, and record the conversation with every server."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mcpzip.cli.parameters import config_option, examples
from mcpzip.cli.serving import Listening, http_options, serve_as
from mcpzip.server.stderr import print_warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpzip.cassettes.cassette import Masked

_MOST = 20
"""Masked secrets of a cassette that are listed. The others are in the cassette."""


@click.command(
    epilog=examples(
        ("mcpzip record --out cassettes", "instead of mcpzip serve, in an agent's MCP settings"),
        ("mcpzip record --http 8931", "for agents over HTTP, until Ctrl-C"),
    )
)
@config_option
@click.option(
    "--out",
    "folder",
    metavar="FOLDER",
    default=".",
    show_default="the working folder",
    type=click.Path(file_okay=False),
    help="Where the cassettes are written.",
)
@click.option("--mask", "paths", metavar="PATH", multiple=True, help="Mask what is at this path, too.")
@click.option(
    "--secret", "names", metavar="NAME", multiple=True, help="Mask the value of this variable, too."
)
@click.option("--overwrite", is_flag=True, help="Replace cassettes instead of adding sessions to them.")
@http_options
def record(
    config: str | None,
    folder: str,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    overwrite: bool,
    **listening: Any,
) -> int:
    """Serve your agent as mcpzip serve --no-daemon does, and record every server.

    FOLDER gets a cassette of each server that is spoken to, SERVER.toml: what mcpzip-fake plays as a server,
    and shows, edits and checks. Secrets are masked before anything is written; at the end, stderr says which.
    """
    from mcpzip.transport.base import record_with
    from mcpzip.transport.recording import Recording

    recording = Recording(folder, os.environ, print_warning, paths=paths, names=names, anew=overwrite)
    record_with(recording)
    try:
        return serve_as(Listening(**listening), config, alone=True)
    finally:
        record_with(None)
        _report(recording.close())


def _report(cassettes: Mapping[str, Sequence["Masked"]]) -> None:
    for path, masked in cassettes.items():
        count = "1 secret was" if len(masked) == 1 else f"{len(masked) or 'no'} secrets were"
        print_warning(f"recorded into {path}; {count} masked. Read it before you publish it.")
        for each in masked[:_MOST]:
            print_warning(f"  {each.mask}  {each.where}: {each.why}")
        if len(masked) > _MOST:
            print_warning(f"  and {len(masked) - _MOST} more, which the cassette lists")
