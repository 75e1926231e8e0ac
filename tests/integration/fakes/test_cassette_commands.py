"""``mcpzip-fake show``, ``edit`` and ``merge`` from a shell."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from helpers.cassette_maker import cassette, shop
from mcpzip_fakes.launch import importable

from mcpzip.cassettes import files


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcpzip_fakes", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, **importable(), "PYTHONIOENCODING": "utf-8", **environment},
    )


def made(tmp_path: Path, name: str = "shop.toml") -> str:
    path = str(tmp_path / name)
    files.save(path, cassette(*shop()), {"era": "legacy"})
    return path


def test_show(tmp_path: Path) -> None:
    path = made(tmp_path)
    done = run("show", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "shop 2, protocol 2025-11-25" in done.stdout
    told = json.loads(run("show", path, "--exchange", "3", "--json").stdout)
    assert told["method"] == "tools/list"
    assert told["request"]["id"] == 2
    assert "tools/call look" in run("show", path, "--exchange", "5").stdout
    assert len(json.loads(run("show", path, "--json").stdout)["exchanges"]) == 5


def test_show_says_what_is_wrong(tmp_path: Path) -> None:
    assert run("show", made(tmp_path), "--exchange", "6").returncode == 2
    missing = run("show", str(tmp_path / "no.toml"))
    assert missing.returncode == 1
    assert "it can't be read" in missing.stderr
    assert "Traceback" not in missing.stderr


def editor(tmp_path: Path, old: str, new: str) -> str:
    """A command that replaces a text in the file it is given. It waits until the clock of files has gone on,
    by which click knows that something was saved."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import os, sys\nfrom pathlib import Path\nfile = Path(sys.argv[-1])\n"
        f"file.write_text(file.read_text('utf-8').replace({old!r}, {new!r}), 'utf-8')\n"
        "os.utime(file, (2e9, 2e9))\n",
        "utf-8",
    )
    return shlex.join([sys.executable, str(script)])


def test_edit(tmp_path: Path) -> None:
    path = made(tmp_path)
    done = run("edit", path, "5", VISUAL=editor(tmp_path, '"42"', '"43"'))
    assert (done.returncode, done.stderr) == (0, "")
    assert b'"text":"43"' in (files.load(path).exchanges[4].reply or b"")
    assert files.load_whole(path)[1] == {"era": "legacy"}


def test_edit_refuses_what_is_no_reply(tmp_path: Path) -> None:
    path = made(tmp_path)
    before = Path(path).read_bytes()
    done = run("edit", path, "5", VISUAL=editor(tmp_path, '"id": 4', '"id": 5'))
    assert done.returncode == 1
    assert '"id" is not that of the request, 4' in done.stderr
    assert Path(path).read_bytes() == before
    assert run("edit", path, "2").returncode == 2


def test_merge(tmp_path: Path) -> None:
    one, two, out = made(tmp_path), made(tmp_path, "b.toml"), str(tmp_path / "out" / "c.toml")
    done = run("merge", one, two, "-o", out)
    assert (done.returncode, done.stdout) == (0, f"{out}: 2 sessions, 10 exchanges.\n")
    assert [each.number for each in files.load(out).sessions] == [1, 2]
    again = run("merge", one, two, "-o", out)
    assert again.returncode == 2
    assert "exists: choose another file, or add --force" in again.stderr
    once = run("merge", one, two, "-o", out, "--once", "--force")
    assert once.stdout == f"{out}: 1 session, 5 exchanges; 5 repeated ones were left out.\n"


def test_redact(tmp_path: Path) -> None:
    path = made(tmp_path)
    values = tmp_path / "values.txt"
    values.write_text("\nshop-server\n", "utf-8")
    before = Path(path).read_bytes()
    arguments = ("redact", path, "--mask", "result.content.*.text", "--value-file", str(values))
    dry = run(*arguments, "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert dry.stdout.splitlines()[-1] == f"2 secrets to mask in {path}. Nothing was changed."
    assert Path(path).read_bytes() == before
    done = run(*arguments)
    assert done.stdout.splitlines() == [
        f"[masked 1]  the command: it is in {values}",
        "[masked 2]  answer 5: result.content.0.text: the path was given",
        f"2 secrets masked in {path}.",
    ]
    whole = files.load(path)
    assert whole.command == ("[masked 1]",)
    assert b'"text":"[masked 2]"' in (whole.exchanges[4].reply or b"")
    assert files.load_whole(path)[1] == {"era": "legacy"}
    assert run(*arguments).stdout == f"{path} has none of them.\n"


def test_redact_takes_no_short_values(tmp_path: Path) -> None:
    path, values = made(tmp_path), tmp_path / "values.txt"
    values.write_text("a\n", "utf-8")
    short = run("redact", path, "--value-file", str(values))
    assert short.returncode == 2
    assert "mask it with --mask and its path" in short.stderr
    unset = run("redact", path, "--secret", "NOT_SET_HERE")
    assert unset.returncode == 1
    assert "there is no such variable" in unset.stderr
