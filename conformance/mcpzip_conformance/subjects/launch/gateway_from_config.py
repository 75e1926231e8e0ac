"""fastmcp-gateway's own command, which wants its servers in a variable, with those of a config file: CONFIG.

It is run by the Python that fastmcp-gateway is installed for, and needs nothing else.
"""

import json
import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    servers = json.loads(Path(sys.argv[1]).read_bytes())["upstreams"]
    os.environ["GATEWAY_UPSTREAMS"] = json.dumps({name: entry["url"] for name, entry in servers.items()})
    runpy.run_module("fastmcp_gateway", run_name="__main__", alter_sys=True)
