"""The relay with a fault: ``python -m mcpzip_conformance.mutants.wrong FAULT CONFIG [PORT]``."""

import gc
import sys
from pathlib import Path

if __name__ == "__main__":
    gc.disable()  # importing modules makes no garbage; `run` enables it again
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # httpx's own command line: half of its import
    from mcpzip_conformance.mutants.faults import find
    from mcpzip_conformance.mutants.relay.relay import run

    _, fault, config, *port = sys.argv
    run(Path(config), int(port[0]) if port else None, find(fault).parts)
