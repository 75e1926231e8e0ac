"""`mcpzip record`: serve, and record the conversation with every server."""

import os
from collections.abc import Mapping, Sequence

import click

from mcpzip.cli.parameters import config_option, examples
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
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve over HTTP; port 0 picks a free one.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(),
    help="Holds the token clients must send; else $MCPZIP_TOKEN.",
)
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A host name that clients use for it."
)
@click.option(
    "--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="A web origin that may connect."
)
def record(
    config: str | None,
    folder: str,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    overwrite: bool,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
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
        if address is not None:
            from mcpzip.server.http.serve import HttpOptions
            from mcpzip.server.http.serve import main as serve_http

            return serve_http(config, HttpOptions(address, token_file, hosts, origins))
        if token_file or hosts or origins:
            raise click.UsageError("--token-file, --allow-host and --allow-origin go with --http.")
        from mcpzip.server.start import main

        return main(config, alone=True)
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
