"""FastMCP's proxy, each server mounted under its name, from a config file: CONFIG [--search | --code].

It is run by the Python that FastMCP is installed for, and needs nothing else.
"""

import json
import sys
from importlib import import_module
from pathlib import Path


def main(config: str, *options: str) -> None:
    """Serve until the client leaves. options: ``--search`` hides the tools behind BM25SearchTransform,
    ``--code`` behind CodeMode."""
    fastmcp, server = import_module("fastmcp"), import_module("fastmcp.server")
    proxy = fastmcp.FastMCP("proxy")
    for name, entry in json.loads(Path(config).read_bytes())["mcpServers"].items():
        proxy.mount(server.create_proxy({"mcpServers": {name: entry}}, name=name), namespace=name)
    if "--search" in options:
        proxy.add_transform(import_module("fastmcp.server.transforms.search").BM25SearchTransform())
    if "--code" in options:
        proxy.add_transform(import_module("fastmcp.experimental.transforms.code_mode").CodeMode())
    proxy.run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
