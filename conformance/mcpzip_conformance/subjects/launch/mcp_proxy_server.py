"""mcp-proxy's own command, which takes its server word by word, with the one of a config file: CONFIG PORT.

It is run by the Python that mcp-proxy is installed for, and needs nothing else.
"""

import json
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    config, port = sys.argv[1:]
    [entry] = json.loads(Path(config).read_bytes())["mcpServers"].values()
    env = [word for name, value in entry["env"].items() for word in ("-e", name, value)]
    sys.argv[1:] = ["--port", port, *env, "--", entry["command"], *entry["args"]]
    runpy.run_module("mcp_proxy", run_name="__main__", alter_sys=True)
