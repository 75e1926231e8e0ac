"""``python -m mcpzip_conformance.mutants.relay CONFIG [PORT]``."""

import sys
from pathlib import Path

from mcpzip_conformance.mutants.relay.relay import run

if __name__ == "__main__":
    _, config, *port = sys.argv
    run(Path(config), int(port[0]) if port else None)
