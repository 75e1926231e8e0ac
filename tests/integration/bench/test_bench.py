"""`python -m bench` with a tiny plan: it runs, and writes what docs/performance.md is made of."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARED = ("result", "both", "rate", "parallel")
"""What a call takes without a proxy, too."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the benchmarks wait with select on pipes")


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_two_subjects_are_measured_beside_each_other(tmp_path: Path) -> None:
    chosen = ("--only", "latency", "--subjects", "mcpzip-no-daemon,direct", "--rounds", "1")
    done = bench(*chosen, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "performance.json").read_text("utf-8"))
    measured = {(one["quantity"], one["subject"]) for one in data["figures"] if one.get("values")}
    both = {(quantity, who) for quantity in SHARED for who in ("mcpzip-no-daemon", "direct")}
    assert measured == {("added", "mcpzip-no-daemon"), ("processor", "mcpzip-no-daemon"), *both}
    assert data["machine"]["mcpzip"]
    assert "calls a second" in done.stdout
    assert {file.stem for file in tmp_path.glob("*.svg")} == {"added", "processor", *SHARED}


def test_an_unknown_subject_is_named_with_those_that_there_are() -> None:
    done = bench("--subjects", "mcpzap")
    assert done.returncode == 2
    assert "there is no subject 'mcpzap'" in done.stderr
    assert "mcpzip-no-daemon" in done.stderr
