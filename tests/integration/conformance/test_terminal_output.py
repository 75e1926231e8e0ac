"""What `mcpzip-conformance` and `mcpzip-fake` write to a terminal of what others wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pty", reason="a terminal of our own needs POSIX")

from mcpzip_conformance.verdict import FORMAT

EVIL = "\x9b31mR\x7f\u202egn\u200b\u034f\u115f\x1b[31me" + "\u0316" * 60 + "\nFORGED: all passed"
ACTS = ("\x9b", "\x7f", "\u202e", "\u200b", "\u034f", "\u115f", "\x1b[31m", "\u0316" * 60)
CONFORMANCE = "from mcpzip_conformance.start import main; main()"
FAKE = "from mcpzip_fakes.cli import main; main()"


def at_a_terminal(code: str, *argv: str) -> str:
    """What the program writes when its stdout and stderr are a terminal."""
    run = (
        "import pty, sys; "
        "sys.exit(pty.spawn([sys.executable, '-c', *sys.argv[1:]], stdin_read=lambda _: b'') and 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, code, *argv],
        capture_output=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")


def report(path: Path, text: str, subjects: int = 1) -> str:
    check = {
        "id": f"g.c{text}",
        "group": "g",
        "level": "must",
        "summary": text,
        "requirement": text,
        "source": "x",
    }
    verdict = {
        "check": check["id"],
        "group": "g",
        "level": "must",
        "status": "failed",
        "seconds": 1.0,
        "summary": text,
    }
    told = [
        {"id": f"s{number}{text}", "title": f"t{text}", "about": "", "verdicts": [verdict]}
        for number in range(subjects)
    ]
    run = {
        "format": FORMAT,
        "started": "2025-01-01T00:00:00Z",
        "seconds": 1,
        "python": "3",
        "platform": "linux",
    }
    path.write_text(json.dumps({**run, "checks": [check], "subjects": told, "expecting": False}), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    "options",
    [[], ["--json", "-"], ["--junit", "-"], ["--markdown", "-"], ["--html", "-"], "compare", "differs"],
)
def test_a_report_acts_on_no_terminal(tmp_path: Path, options: list[str] | str) -> None:
    first = report(tmp_path / "a.json", EVIL)
    second = report(tmp_path / "b.json", EVIL + "2", subjects=2)
    if options == "compare":
        argv = ["compare", first, first, "--json"]
    elif options == "differs":
        argv = ["compare", first, second]
    else:
        argv = ["report", first, *options]
    shown = at_a_terminal(CONFORMANCE, *argv)
    assert "FORGED" in shown
    assert [sign for sign in ACTS if sign in shown] == []
    if options not in (["--html", "-"], ["--junit", "-"]):  # whose texts have lines of their own
        assert "\nFORGED" not in shown


def test_what_programs_read_of_a_report_is_as_it_was(tmp_path: Path) -> None:
    first = report(tmp_path / "a.json", EVIL)
    argv = [sys.executable, "-c", CONFORMANCE, "report", first, "--json", "-"]
    told = json.loads(subprocess.run(argv, capture_output=True, timeout=60, check=False).stdout)
    assert told["subjects"][0]["title"] == f"t{EVIL}"
    shown = at_a_terminal(CONFORMANCE, "report", first, "--json", "-")
    assert json.loads(shown)["subjects"][0]["title"] == f"t{EVIL}"


@pytest.mark.parametrize(
    ("code", "argv"),
    [
        (FAKE, ["\x1b[31mx\u202e\nFORGED"]),
        (FAKE, ["--show", "\x1b[31mx\nFORGED"]),
        (FAKE, ["gemini", "--settings", "/\x1b[31m/\x9b/none.toml\nFORGED"]),
        (FAKE, ["echo", "--era", "\x1b[31m\x9b\nFORGED"]),
        (FAKE, ["--\x1b[31m\u202e\nFORGED"]),
        (FAKE, ["echo", "more\x1b[31m\nFORGED"]),
        (CONFORMANCE, ["\x1b[31m\u202e\nFORGED"]),
        (CONFORMANCE, ["run", "\x1b[31m\u202e\nFORGED"]),
        (CONFORMANCE, ["run", "--\x1b[31m\u202e\nFORGED"]),
        (CONFORMANCE, ["run", "--jobs", "\x1b[31m\u202e\nFORGED"]),
        (CONFORMANCE, ["report", "/\x1b[31m\u202e\nFORGED"]),
    ],
)
def test_an_error_repeats_no_control_of_a_command_line(code: str, argv: list[str]) -> None:
    shown = at_a_terminal(code, *argv)
    assert "Error: " in shown
    assert [sign for sign in ACTS if sign in shown] == []
    assert "\nFORGED" not in shown


@pytest.mark.parametrize("code", [FAKE, CONFORMANCE])
def test_help_is_as_it_was(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, "-h"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "Options:" in done.stdout
    assert len(done.stdout.splitlines()) > 10
