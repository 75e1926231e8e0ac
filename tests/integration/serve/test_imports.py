"""What a start imports: as little as it needs, for each import costs every start its time."""

import subprocess
import sys
from pathlib import Path


def test_importing_the_paths_imports_nothing_more():
    program = (
        "import sys; before = set(sys.modules); import mcpzip.config.paths;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["mcpzip", "mcpzip.config", "mcpzip.config.paths"]


HEAVY = {
    "asyncio",
    "typing",
    "dataclasses",
    "msgspec",
    "subprocess",
    "logging",
    "mcp",
    "click",
    "hashlib",
}


def imported(*modules: str) -> set[str]:
    """What is imported after these modules."""
    code = f"import sys; import {', '.join(modules)}; print(*sorted(sys.modules))"
    root = str(Path(__file__).resolve().parents[3])
    found = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(found.stdout.split())


def test_it_imports_only_the_smallest_parts_of_the_standard_library() -> None:
    assert not HEAVY & imported("mcpzip.cli.main", "mcpzip.server.start", "mcpzip.server.early_handshake")


def test_with_a_running_daemon_it_imports_nothing_that_only_others_need() -> None:
    found = imported("mcpzip.cli.main", "mcpzip.server.start", "mcpzip.server.shim")
    alone = {"mcpzip.server.early_handshake", "mcpzip.server.handshake_cache"}
    assert not (HEAVY | alone | {"socket", "selectors"}) & found


def test_without_a_daemon_it_imports_nothing_that_only_the_daemon_needs() -> None:
    found = imported("mcpzip.cli.main", "mcpzip.server.start", "mcpzip.server.early_handshake")
    assert not {"mcpzip.server.shim", "mcpzip.server.session_record", "socket"} & found
