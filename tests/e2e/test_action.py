"""The step of action.yml that plays the checks, in bash as GitHub runs it, with the installed runner."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helpers.driver import ROOT

STEP: str = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][1]["run"]
INPUTS = {"LEVELS": "must should", "CHECK_GROUPS": "", "CHECKS": "fidelity.is-error", "EXPECT": ""}


def play(folder: Path, subjects: str, **inputs: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **INPUTS, "SUBJECTS": subjects, "REPORTS": "all reports", **inputs}
    environment["MCPZIP_CONFORMANCE_BIN"] = str(Path(sys.executable).parent)
    environment["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP]
    return subprocess.run(
        shell, env=environment, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.skipif(os.name == "nt", reason="starts bash by its name")
def test_the_step_writes_reports_and_fails_as_the_runner_does(tmp_path: Path) -> None:
    done = play(tmp_path, "direct\n")
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "all reports").iterdir()}
    assert written == {"report.json", "report.html", "report.md", "junit.xml"}
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert summary == (tmp_path / "all reports" / "report.md").read_text("utf-8")
    assert "1 passed" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="starts bash by its name")
def test_inputs_are_words_and_never_code(tmp_path: Path) -> None:
    done = play(tmp_path, "--help\n$(touch pwned) x.toml", EXPECT="`touch pwned`", CHECKS="")
    assert done.returncode == 2
    assert not (tmp_path / "pwned").exists()
