"""`mcpzip serve` with --http, --help or an unusual spelling. `cli.main` runs a plain `serve` itself."""

import gc

import click


@click.command()
@click.option("-c", "--config", "config", metavar="FILE", help="The config file.")
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve over HTTP; port 0 picks a free one.")
@click.option("--token-file", metavar="FILE", help="Holds the token clients must send; else $MCPZIP_TOKEN.")
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A host name that clients use for it."
)
@click.option(
    "--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="A web origin that may connect."
)
def serve(
    config: str | None,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve your agent over stdio: the command to put into its MCP settings.

    With --http it serves many agents at http://HOST:PORT/mcp, until SIGTERM or Ctrl-C. Without a HOST only
    this machine can connect; any other HOST needs a token.
    """
    if address is not None:
        gc.disable()  # importing modules makes no garbage; `main` enables it again
        from mcpzip.server.http.serve import Offer
        from mcpzip.server.http.serve import main as serve_http

        return serve_http(config, Offer(address, token_file, hosts, origins))
    if token_file or hosts or origins:
        raise click.UsageError("--token-file, --allow-host and --allow-origin go with --http.")
    from mcpzip.server.frontdesk import main

    return main(config)
