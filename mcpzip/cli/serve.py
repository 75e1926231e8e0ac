"""`mcpzip serve` with --help, more options for HTTP, or an unusual spelling; `cli.main` runs a plain one."""

import gc

import click

from mcpzip.cli.parameters import config_option, examples


@click.command(
    epilog=examples(
        ("mcpzip serve", "what an agent starts"),
        ("mcpzip serve --http 8931", "http://127.0.0.1:8931/mcp, for all agents on this machine"),
        ("mcpzip serve --http 0.0.0.0:8931 --token-file token", "for other machines too"),
    )
)
@config_option
@click.option("--no-daemon", "alone", is_flag=True, help="Serve without the daemon, in this process.")
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
def serve(
    config: str | None,
    alone: bool,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve your agent over stdio: the command to put into its MCP settings.

    All agents are served by one process in the background, the daemon, which starts and ends by itself:
    mcpzip ps shows it.

    With --http it serves many agents at http://HOST:PORT/mcp, until SIGTERM or Ctrl-C. Without a HOST only
    this machine can connect; any other HOST needs a token.
    """
    if address is not None:
        gc.disable()  # importing modules makes no garbage; `main` enables it again
        from mcpzip.server.http.serve import HttpOptions
        from mcpzip.server.http.serve import main as serve_http

        return serve_http(config, HttpOptions(address, token_file, hosts, origins))
    if token_file or hosts or origins:
        raise click.UsageError("--token-file, --allow-host and --allow-origin go with --http.")
    from mcpzip.server.start import main

    return main(config, alone=alone)
