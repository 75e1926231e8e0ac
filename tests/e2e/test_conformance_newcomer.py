"""docs/conformance-subjects.md, followed to the letter: its files written, its commands run, in its order."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from helpers.doc_commands import ROOT
from mcpzip_fakes.launch import importable

PAGE = ROOT / "docs" / "conformance-subjects.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAILS = ["mcpzip-conformance run tiny.toml --check fidelity.is-error --check fidelity.unknown-fields"]
"""Commands that are shown to fail."""
SECONDS = re.compile(r"\b\d+\.\d+ s\b")


def words(command: str) -> list[str]:
    """``command`` by this Python."""
    name, *rest = shlex.split(command)
    modules = {"mcpzip-conformance": ["-m", "mcpzip_conformance"], "python": []}
    return [sys.executable, *modules[name], *rest]


def seen(text: str) -> list[str]:
    """The lines of an output that stay the same from run to run."""
    return [line.rstrip() for line in text.splitlines() if not SECONDS.fullmatch(line.strip())]


def test_a_newcomer_follows_the_page(isolated: Path) -> None:
    place = isolated / "work"
    place.mkdir()
    env = {**os.environ, **importable(), "COLUMNS": "100"}
    ran = []
    for kind, body in FENCE.findall(PAGE.read_text("utf-8")):
        if kind in ("python", "toml"):
            name, _, content = body.partition("\n")
            (place / name.removeprefix("# ")).write_text(content, "utf-8")
            continue
        assert kind == "console"
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            done = subprocess.run(
                words(command), env=env, cwd=place, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == (1 if command in FAILS else 0), done.stdout + done.stderr
            printed = seen(SECONDS.sub("… s", done.stdout))
            assert [line for line in seen(SECONDS.sub("… s", shown)) if line not in printed] == []
            ran.append(command)
    assert len(ran) == 7
    assert set(FAILS) <= set(ran)
    assert "fidelity.unknown-fields" in (place / "known.toml").read_text("utf-8")
