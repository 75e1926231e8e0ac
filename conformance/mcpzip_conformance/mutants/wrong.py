"""The relay with a fault: ``python -m mcpzip_conformance.mutants.wrong FAULT CONFIG [PORT]``."""

import sys
from pathlib import Path

from mcpzip_conformance.mutants.faults import FAULTS
from mcpzip_conformance.mutants.relay.relay import run

if __name__ == "__main__":
    _, fault, config, *port = sys.argv
    run(Path(config), int(port[0]) if port else None, FAULTS[fault].parts)
