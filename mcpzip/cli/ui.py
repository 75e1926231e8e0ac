"""`mcpzip ui`: the page to look at."""

import asyncio
import os

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples
from mcpzip.config import config_path
from mcpzip.config.paths import find_project


@click.command(
    epilog=examples(
        ("mcpzip ui", "opens it in your browser, until Ctrl-C"),
        ("mcpzip ui --no-open", "prints its address only"),
        ("mcpzip ui --port 8932", "at the same port every time"),
    )
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--no-open", "no_open", is_flag=True, help="Open no browser; print the address only.")
@config_option
def ui(port: int, no_open: bool, config: str | None) -> int:
    """Open a page in your browser that shows what runs, and edits the config: servers, agents, tools.

    It is served on this machine only, by this command, until you end it. Its address has a token, which is
    new for each run: who doesn't have it sees nothing.
    """
    from mcpzip.ui.serve import Options, listen, serve  # brings the templates

    options = Options(config_path(config, os.environ), find_project(os.environ), port, not no_open)
    asyncio.run(serve(options, listen(port), console.say, console.warn, os.environ))
    return 0
