"""`mcpzip serve`: the proxy on stdio, or over HTTP. A plain `serve` never comes this way (`cli.main`); this
one is for --http, --help and odd spellings.
"""

import gc

import click


@click.command()
@click.option("-c", "--config", "config", metavar="FILE", help="The config file.")
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve over HTTP instead; port 0: a free one.")
@click.option("--token-file", metavar="FILE", help="Holds the token clients must send; else $MCPZIP_TOKEN.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="A name clients reach it by.")
@click.option("--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="Web pages to let in.")
def serve(
    config: str | None,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve your agent over stdio: the command to put into its MCP settings.

    With --http many agents are served at http://HOST:PORT/mcp, until SIGTERM or Ctrl-C. Without a HOST it is
    this machine only; any other needs a token.
    """
    if address is not None:
        gc.disable()  # nothing is garbage while all that is made is modules; `main` switches it on
        from mcpzip.server.http.serve import HttpOptions
        from mcpzip.server.http.serve import main as serve_http

        return serve_http(config, HttpOptions(address, token_file, hosts, origins))
    if token_file or hosts or origins:
        raise click.UsageError("--token-file, --allow-host and --allow-origin go with --http.")
    from mcpzip.server.early_handshake import main

    return main(config)
