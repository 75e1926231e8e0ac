"""The commands of ``mcpzip-conformance``: what they print, write and exit with. One run serves most."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.wrong_proxy import wrong_proxy
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.cli import main
from mcpzip_conformance.commands import side_by_side
from mcpzip_conformance.processes import is_running
from mcpzip_conformance.transcript import Transcript
from mcpzip_fakes.launch import importable
from mcpzip_fakes.record import Record

CHECKS = ("fidelity.is-error", "fidelity.meta", "search.limit")
ASKED = tuple(word for check in CHECKS for word in ("--check", check))


def invoke(*words: str, columns: int = 120) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, words)
    return result.exit_code, result.output


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@dataclass(frozen=True)
class Played:
    """One run of a wrong proxy and of none, with everything it can write."""

    folder: Path
    code: int
    output: str

    @property
    def report(self) -> str:
        return str(self.folder / "report.json")

    def file(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The subject file of a proxy that drops ``isError``."""
    file = tmp_path_factory.mktemp("subject") / "wrong.toml"
    file.write_text(wrong_proxy("wrong"), encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def played(wrong: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("reports")
    names = {
        "--json": "report.json",
        "--junit": "junit.xml",
        "--markdown": "card.md",
        "--html": "page.html",
        "--summary": "summary.md",
        "--badge": "badge.json",
    }
    files = [word for option, name in names.items() for word in (option, str(folder / name))]
    return Played(folder, *invoke("run", "direct", wrong, *ASKED, *files))


def test_a_run_shows_a_table_and_writes_what_was_asked_for(played: Played) -> None:
    assert played.code == 1
    assert ["fidelity.is-error", "│", "must", "│", "passed", "│", "FAILED"] in lines(played.output)
    assert '-  "isError": true' in played.output
    assert sorted(os.listdir(played.folder)) == [
        "badge.json",
        "card.md",
        "junit.xml",
        "page.html",
        "report.json",
        "summary.md",
    ]
    assert json.loads(played.file("badge.json"))["message"] == "must 3/4"
    assert "## Findings of level must" in played.file("summary.md")
    assert {one["id"] for one in json.loads(played.file("report.json"))["subjects"]} == {"direct", "wrong"}
    assert ET.fromstring(played.file("junit.xml")).get("failures") == "1"
    assert "fidelity.is-error" in played.file("card.md")
    assert played.file("page.html").startswith("<!doctype html>")


def test_a_run_is_compared_with_an_earlier_one(played: Played, wrong: str, tmp_path: Path) -> None:
    asked = ("--check", "fidelity.is-error", "--check", "fidelity.meta")
    code, output = invoke("run", wrong, *asked, "--against", played.report)
    assert (code, "wrong: no change" in output) == (0, True), "what failed before is no worse"

    was = json.loads(played.file("report.json"))
    [subject] = [one for one in was["subjects"] if one["id"] == "wrong"]
    for verdict in subject["verdicts"]:
        verdict["status"] = {"passed": "failed", "failed": "passed"}.get(verdict["status"], verdict["status"])
    (tmp_path / "was.json").write_text(json.dumps(was), encoding="utf-8")
    summary = tmp_path / "summary.md"
    code, output = invoke(
        "run", wrong, *asked, "--against", str(tmp_path / "was.json"), "--summary", str(summary)
    )
    assert code == 1
    assert "wrong: 1 worse, 1 better" in output
    assert "worse: fidelity.is-error (must), passed before, failed now: The answer" in output
    assert "- better: fidelity.meta (must), failed before, passed now" in summary.read_text("utf-8")


def test_what_there_is_no_result_of_is_said_before_anything_is_played(wrong: str) -> None:
    for version in ("0.0.0", "../0.1.0", ""):
        code, output = invoke("run", wrong, "--against", version)
        assert code == 2
        assert f"There is no published result of version {version!r}" in " ".join(output.split())


def test_json_alone_prints_and_before_a_subject_takes_it_for_no_file(wrong: str) -> None:
    code, output = invoke("run", "--json", wrong, "--check", "search.limit")
    assert code == 0
    [subject] = json.loads(output)["subjects"]
    assert [verdict["status"] for verdict in subject["verdicts"]] == ["skipped"]


def test_what_is_not_run_here_is_played_where_its_program_is(tmp_path: Path, wrong: str) -> None:
    text = 'not_run = "It costs money."\n' + Path(wrong).read_text(encoding="utf-8")
    (tmp_path / "here.toml").write_text(text, encoding="utf-8")
    (tmp_path / "away.toml").write_text(text.replace("{python}", "no-such-program"), encoding="utf-8")
    words = [str(tmp_path / name) for name in ("away.toml", "here.toml")]
    code, output = invoke("run", *words, "--check", "search.limit", "--json")
    assert code == 0
    away, here = json.loads(output)["subjects"]
    assert (away["not_run"], away["verdicts"]) == ("It costs money.", [])
    assert (here["not_run"], len(here["verdicts"])) == ("", 1)


def test_a_saved_run_is_shown_again(played: Played, tmp_path: Path) -> None:
    code, output = invoke("report", played.report, "--markdown", str(tmp_path / "card.md"))
    assert (code, output) == (0, played.output)
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == played.file("card.md")


def test_saved_runs_become_one(played: Played, tmp_path: Path) -> None:
    other = json.loads(played.file("report.json"))
    other["subjects"] = [{**other["subjects"][0], "id": "third", "title": "third", "verdicts": []}]
    other["python"], other["seconds"], other["started"] = "3.99.0", 1.5, "2020-01-01T00:00:00+00:00"
    file = tmp_path / "other.json"
    file.write_text(json.dumps(other), encoding="utf-8")
    code, output = invoke("report", played.report, str(file), "--json")
    assert code == 0
    merged = json.loads(output)
    assert [one["id"] for one in merged["subjects"]] == ["direct", "wrong", "third"]
    assert [one["id"] for one in merged["checks"]] == list(CHECKS)
    assert merged["started"] == "2020-01-01T00:00:00+00:00"
    assert merged["python"].split(", ")[1] == "3.99.0"
    before = file.read_bytes()
    code, output = invoke("report", "--json", str(file), played.report)
    assert (code, file.read_bytes()) == (2, before)
    assert f"--json would write over {file}: write --json=- to print" in output
    code, output = invoke("report", f"--json={file}", played.report)
    assert [one["id"] for one in json.loads(file.read_bytes())["subjects"]] == ["direct", "wrong"]
    code, output = invoke("report", played.report, played.report)
    assert code == 2
    assert "'direct' is in " in output


def test_what_is_pinned_is_known_and_what_differs_is_not(wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    code, output = invoke("run", wrong, *ASKED[:4], "--write-expect", str(file))
    assert code == 0
    assert "known.toml: 1 known failure pinned." in output
    assert "wrong: 1 passed, 1 failed (1 known)" in output
    written = file.read_text(encoding="utf-8")
    assert '"fidelity.is-error" = "The answer to tools/call shop tell differs."' in written
    file.write_text(written + '"fidelity.meta" = "Fixed by now."\n', encoding="utf-8")
    code, output = invoke("run", wrong, *ASKED[:4], "--expect", str(file), "--json")
    assert code == 1
    report = json.loads(output)
    assert report["expecting"] is True
    assert [one["pinned"] != "" for one in report["subjects"][0]["verdicts"]] == [True, True]


def test_explain_shows_both_sides_and_what_the_server_saw(wrong: str) -> None:
    code, output = invoke("explain", "fidelity.is-error", wrong)
    assert code == 0
    assert "A result with ``isError`` arrives with it" in output
    assert "#error-handling" in output
    assert "FAILED. The answer to tools/call shop tell differs." in output
    assert ["directly", "to", "the", "server", "through", "wrong"] in lines(output)
    assert output.count('"isError": true') == 2  # in the diff, and on the direct side
    paired = [line for line in output.splitlines() if line.count("tools/call") == 2]
    assert any("answer to tools/call" in line for line in paired)
    assert max(map(len, output.partition("what the server")[0].splitlines())) <= 120
    seen = output.partition("what the server shop saw, through wrong")[2]
    assert '"method":"tools/call","params":{"name":"tell"' in seen


def test_explain_plays_a_check_that_compares_nothing_without_a_proxy_too(wrong: str) -> None:
    code, output = invoke("explain", "protocol.ping", wrong, "--json")
    assert code == 0
    told = json.loads(output)
    assert told["verdict"]["status"] == "passed"
    assert told["straight_is_control"] is True
    for side in ("straight", "through"):
        [messages] = told[side]
        assert {"jsonrpc": "2.0", "id": messages[-2]["message"]["id"], "method": "ping"} in [
            one.get("message") for one in messages if one["from"] == "client"
        ]
    assert any(line["what"] == "in" for line in told["servers"]["shop"])


def transcript(*said: tuple[bool, bytes]) -> Transcript:
    made = Transcript()
    for sent, raw in said:
        made.add(raw, sent=sent)
    return made


def test_what_both_sides_said_stands_in_one_row() -> None:
    ask, answer = b'{"id":%d,"method":"%s"}', b'{"id":%d,"result":{}}'
    straight = transcript((True, ask % (1, b"tools/call")), (False, answer % 1))
    through = transcript(
        (True, ask % (1, b"tools/list")),
        (False, answer % 1),
        (True, ask % (2, b"tools/call")),
        (False, answer % 2),
    )
    told = [
        tuple(map(str, row))
        for row in side_by_side.rows(side_by_side.side([straight]), side_by_side.side([through]))
    ]
    assert told == [
        ("None", "→ tools/list"),
        ("None", "← answer to tools/list"),
        ("→ tools/call", "→ tools/call"),
        ("← answer to tools/call", "← answer to tools/call"),
    ]


def test_a_message_is_shown_so_that_it_can_be_read() -> None:
    assert side_by_side.shown(b'{"id":1}') == '{"id":1}'
    assert side_by_side.shown(b'{"text":"%s"}' % (b"x" * 60)).splitlines()[0] == "{"
    long = side_by_side.shown(b'{"text":"%s"}' % (b"x" * 5_000)).splitlines()
    assert (len(long), long[1]) == (3, "… 5011 bytes …")
    assert side_by_side.shown(b"\x1b[31m \xff") == "\\x1b[31m \\xff"


def test_explain_of_what_is_skipped_says_why(wrong: str) -> None:
    code, output = invoke("explain", "search.limit", wrong)
    assert code == 0
    assert "SKIPPED. No tool of it searches." in output


def test_compare_plays_what_is_not_saved_and_exits_as_diff_does(played: Played, wrong: str) -> None:
    code, output = invoke("compare", wrong, "direct", "--check", "fidelity.is-error")
    assert code == 1
    assert ["fidelity.is-error", "│", "must", "│", "FAILED", "│", "passed"] in lines(output)
    code, output = invoke("compare", played.report, wrong, "--json", "--check", "search.limit")
    assert code == 0
    [comparison] = json.loads(output)
    assert (comparison["alike"], comparison["differences"]) == (1, [])
    code, output = invoke("compare", played.report, played.report)
    assert code == 0
    assert output.count("0 differ, 3 alike") == 2


def test_the_checks_and_the_subjects_are_listed_as_data() -> None:
    code, output = invoke("list", "--json")
    assert code == 0
    assert [one["id"] for one in json.loads(output)] == [check.id for check in ALL]
    code, output = invoke("subjects", "--json")
    assert code == 0
    state = {one["id"]: one["state"] for one in json.loads(output)}
    assert state["direct"] == state["mcpzip:direct"] == "ready"
    assert state["mcp-proxy:client"] == "not installed"


def test_a_shipped_subject_is_a_start_for_ones_own(tmp_path: Path) -> None:
    code, output = invoke("subjects", "--show", "mcpzip")
    assert code == 0
    (tmp_path / "mine.toml").write_text(output, encoding="utf-8")
    code, output = invoke("run", str(tmp_path / "mine.toml:direct"), "--check", "search.limit")
    assert code == 0
    assert "1 skipped" in output


def test_the_schema_is_printed() -> None:
    code, output = invoke("schema")
    assert code == 0
    assert json.loads(output)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_check_is_shown() -> None:
    code, output = invoke("show", "resilience.slow-start")
    assert code == 0
    assert output.startswith("resilience.slow-start (must)\n\nA server that starts slowly does not delay")
    assert "source: docs/conformance.md#what-a-proxy-owes" in output
    assert "needs a subject that connects to more than one server at a time" in output


def test_the_page_lists_the_checks_there_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "conformance-checks.md").read_text(encoding="utf-8")
    code, output = invoke("list")
    assert code == 0
    assert output.strip() in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "nobody"), "There is no subject 'nobody'"),
        (("run",), "Missing argument"),
        (("run", "direct", "--check", "protocol.pong"), "did you mean 'protocol.ping'?"),
        (("run", "direct", "--jobs", "0"), "jobs"),
        (("run", "direct", "--html", "none/page.html"), "there is no folder none: make it first."),
        (("run", "direct", "--html", "."), ". is a folder: give the path of a file."),
        (("run", "direct", "--html", "-", "--json"), "--json and --html would both go to stdout"),
        (("run", "direct", "--expect", "none.toml"), "none.toml: it can't be read"),
        (("run", "direct", "--expect", "a", "--write-expect", "b"), "are one or the other"),
        (("run", "mcp-proxy"), "mcp-proxy isn't installed: run mcpzip-conformance install mcp-proxy."),
        (("show", "protocol.pong"), "did you mean 'protocol.ping'?"),
        (("list", "--group", "x"), "There is no group 'x'"),
        (("report", "none.json"), "none.json can't be read"),
        (("explain", "protocol.ping", "mcpzip"), "has several variants"),
        (("compare", "none.json", "direct"), "none.json can't be read"),
        (("install",), "name a subject, or see --list"),
        (("uninstall", "--all", "direct"), "name a subject, or say --all"),
    ],
)
def test_bad_usage_is_exit_code_2(words: tuple[str, ...], says: str) -> None:
    code, output = invoke(*words)
    assert code == 2
    assert says in " ".join(output.split())


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, ("run", "direct", "--check", "resilience.slow-call-same-server")),
        (signal.SIGTERM, ("explain", "resilience.slow-call-same-server", "direct")),
    ],
)
def test_an_interrupted_run_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, words: tuple[str, ...]
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "mcpzip_conformance", *words]
    env = {**os.environ, **importable(), "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        pid = started_fake(temporary)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Interrupted" in errors
    assert list(temporary.iterdir()) == []
    assert not is_running(pid)


def started_fake(temporary: Path) -> int:
    """The pid of the fake that the run has started, once there is one."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for file in temporary.rglob("record.jsonl"):
            for line in Record(file).events("start"):
                return line.pid
        time.sleep(0.005)
    raise AssertionError("the run started no fake")
