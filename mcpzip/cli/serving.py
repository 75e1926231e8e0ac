"""What `mcpzip serve` and `mcpzip record` share: the options for HTTP, and serving as they say."""

import gc
from collections.abc import Callable
from typing import TypeVar

import click
from msgspec import Struct

_Command = TypeVar("_Command", bound=Callable[..., object])
_OPTIONS = (
    click.option(
        "--http", "address", metavar="[HOST:]PORT", help="Serve over HTTP; port 0 picks a free one."
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        type=click.Path(),
        help="Holds the token clients must send; else $MCPZIP_TOKEN.",
    ),
    click.option(
        "--allow-host", "hosts", metavar="NAME", multiple=True, help="A host name that clients use for it."
    ),
    click.option(
        "--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="A web origin that may connect."
    ),
)


class Listening(Struct, frozen=True):
    """The values of `http_options`."""

    address: str | None
    token_file: str | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]


def http_options(command: _Command) -> _Command:
    """Adds the options to a command: its parameters are the members of `Listening`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def serve_as(listening: Listening, config: str | None, *, alone: bool) -> int:
    """Serves over HTTP or stdio, until it is told to end. alone: without the daemon. Returns the exit code.
    Raises click.UsageError."""
    if listening.address is not None:
        gc.disable()  # importing modules makes no garbage; `main` enables it again
        from mcpzip.cli.team_page import open_page
        from mcpzip.server.http.serve import HttpOptions
        from mcpzip.server.http.serve import main as serve_http

        options = HttpOptions(listening.address, listening.token_file, listening.hosts, listening.origins)
        return serve_http(config, options, open_page)
    if listening.token_file or listening.hosts or listening.origins:
        raise click.UsageError("--token-file, --allow-host and --allow-origin go with --http.")
    from mcpzip.server.start import main

    return main(config, alone=alone)
