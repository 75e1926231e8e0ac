"""`mcpzip serve`: the proxy on stdio. A plain `serve` never comes this way (`cli.main`); this one is for
--help and odd spellings.
"""

import click


@click.command()
@click.option("-c", "--config", "config", metavar="FILE", help="The config file.")
def serve(config: str | None) -> int:
    """Serve your agent over stdio: the command to put into its MCP settings."""
    from mcpzip.server.frontdesk import main

    return main(config)
