"""`mcpzip serve` with --help, more options for HTTP, or an unusual spelling; `cli.main` runs a plain one."""

from typing import Any

import click

from mcpzip.cli.parameters import config_option, examples
from mcpzip.cli.serving import Listening, http_options, serve_as


@click.command(
    epilog=examples(
        ("mcpzip serve", "what an agent starts"),
        ("mcpzip serve --http 8931", "http://127.0.0.1:8931/mcp, for all agents on this machine"),
        ("mcpzip serve --http 0.0.0.0:8931 --token-file token", "for other machines too"),
    )
)
@config_option
@click.option("--no-daemon", "alone", is_flag=True, help="Serve without the daemon, in this process.")
@http_options
def serve(config: str | None, alone: bool, **listening: Any) -> int:
    """Serve your agent over stdio: the command to put into its MCP settings.

    All agents are served by one process in the background, the daemon, which starts and ends by itself:
    mcpzip ps shows it.

    With --http it serves many agents at http://HOST:PORT/mcp, until SIGTERM or Ctrl-C. Without a HOST only
    this machine can connect; any other HOST needs a token.
    """
    return serve_as(Listening(**listening), config, alone=alone)
