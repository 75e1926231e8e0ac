"""The audit log: whole after every fault, and no change of it stays unseen."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.config.schema import AuditConfig
from mcpzip.model.entry import Entry
from mcpzip.model.redaction import register
from mcpzip.model.risk import WORST
from mcpzip.policy import audit_file_writer, audit_log, audit_stdout
from mcpzip.policy.audit_destinations import open_destination
from mcpzip.policy.audit_file_writer import FileWriter
from mcpzip.policy.audit_files import FileReader, Head, decoded, files, hash_of, problems, read_head
from mcpzip.policy.audit_log import AuditedCall, AuditLog
from mcpzip.policy.decision import Verdict
from mcpzip.policy.hashes import arguments_hash

CALLED = ("server", "tool", "decision", "rule", "approved_by", "outcome", "ms")
VERDICT = Verdict("ask", "policy.writes", WORST)
INFO = b'{"name":"claude","version":"2","title":"x"}'


def entry(tool: str = "merge") -> Entry:
    return Entry.parse("git", json.dumps({"name": tool}).encode())


def call(n: int = 0, arguments: bytes | None = None, tool: str = "merge") -> AuditedCall:
    given = b'{"n":%d,"token":"abc"}' % n if arguments is None else arguments
    return AuditedCall(
        1_795_489_200.0 + n, 0.25, entry(tool), given, VERDICT, "person", "result", INFO, 4711, 3
    )


def log(path: Path, values: bool = False, warn: Callable[[str], None] = print) -> AuditLog:
    return AuditLog(FileWriter(str(path), is_ours=False), values=values, warn=warn)


def write(path: Path, count: int = 3) -> None:
    written = log(path)
    for n in range(count):
        written.add(call(n))
    written.close(30)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(text) for _, text in FileReader(str(path)).texts()]


def found(path: Path) -> Iterator[str]:
    """What is wrong with the log."""
    log = FileReader(str(path))
    return problems(log.texts(), log.head)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "audit.jsonl"


def test_a_line_says_what_was_called_and_not_with_which_values(path: Path) -> None:
    write(path, 1)
    (line,) = lines(path)
    assert line["client"] == {"name": "claude", "version": "2", "pid": 4711, "number": 3}
    assert {key: line[key] for key in line if key in CALLED} == {
        "server": "git", "tool": "merge", "decision": "ask", "rule": "policy.writes", "approved_by": "person",
        "outcome": "result", "ms": 250.0,
    }  # fmt: skip
    assert line["risk"] == ["writes", "destroys", "reaches_out"]
    assert line["arguments"] == ["n", "token"]
    assert line["arguments_sha256"] == arguments_hash(b'{"token":"abc","n":0}')
    assert "abc" not in path.read_text()
    assert list(found(path)) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_its_owner_can_read_it(path: Path) -> None:
    write(path)
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


def test_values_are_written_if_they_are_asked_for_without_the_secrets_of_the_config(path: Path) -> None:
    register("very-secret-token")
    written = log(path, values=True)
    written.add(call(arguments=b'{"a":[1.5],"t":"very-secret-token"}'))
    written.add(call(arguments=b'{"a":"' + b"x" * audit_log.VALUES + b'"}'))
    written.close(30)
    first, second = lines(path)
    assert first["values"] == {"a": [1.5], "t": "…"}
    assert "values" not in second


def test_many_processes_write_one_log(path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_audit_log import write
write(Path({str(path)!r}), 40)
"""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert [line["n"] for line in lines(path)] == list(range(1, 121))
    assert list(found(path)) == []


def test_full_files_are_renamed_and_the_oldest_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_file_writer, "FILE_SIZE", 3_000)
    monkeypatch.setattr(audit_file_writer, "FULL_FILES", 2)
    for _ in range(12):
        write(path, 2)
    names = [Path(each).name for each in files(str(path))]
    assert len(names) == 3
    assert names[-1] == "audit.jsonl"
    numbers = [line["n"] for line in lines(path)]
    assert names[0] == f"audit.jsonl.{numbers[0]:012}"
    assert numbers == list(range(int(str(numbers[0])), 25))
    assert list(found(path)) == []
    os.unlink(files(str(path))[0])
    assert "The log begins with call" in " ".join(found(path))


TEXT = [b"{}", b"", b"no JSON", b'{"n":1}']


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.data())
def test_any_change_shows(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.jsonl"
    for each in tmp_path.glob("a.jsonl*"):
        each.unlink()
    write(path, 5)
    whole = path.read_bytes().splitlines(keepends=True)
    at = data.draw(st.integers(0, 4))
    change = data.draw(st.sampled_from(["remove", "alter", "swap", "repeat", "add", "cut", "behead"]))
    if change == "remove":
        changed = whole[:at] + whole[at + 1 :]
    elif change == "alter":
        changed = [*whole]
        changed[at] = changed[at].replace(b'"merge"', b'"merg"')
    elif change == "swap":
        changed = [*whole]
        other = data.draw(st.integers(0, 4).filter(lambda n: n != at))
        changed[at], changed[other] = changed[other], changed[at]
    elif change == "repeat":
        changed = [*whole[: at + 1], *whole[at:]]
    elif change == "add":
        changed = [*whole[:at], data.draw(st.sampled_from(TEXT)) + b"\n", *whole[at:]]
    elif change == "cut":
        changed = whole[:at]
    else:
        changed = whole[at + 1 :]
    path.write_bytes(b"".join(changed))
    assert list(found(path)) != []
    write(path, 1)  # what is written later doesn't hide it
    assert list(found(path)) != []


def test_a_process_that_was_killed_leaves_a_log_that_goes_on(path: Path) -> None:
    """In the middle of a line; and after the line, before its head."""
    write(path, 2)
    head = Path(f"{path}.head").read_bytes()
    write(path, 1)
    Path(f"{path}.head").write_bytes(head)
    write(path, 1)
    assert [line["n"] for line in lines(path)] == [1, 2, 3, 4]
    assert list(found(path)) == []
    with path.open("ab") as file:
        file.write(b'{"n":5,"pr')
    write(path, 1)
    assert [decoded(text) is None for _, text in FileReader(str(path)).texts()] == [False] * 4 + [True, False]
    assert len(list(found(path))) == 1


def test_a_missing_head_is_said_and_made_again(path: Path) -> None:
    write(path, 2)
    os.unlink(f"{path}.head")
    assert "What the last line is can't be read" in " ".join(found(path))
    write(path, 1)
    assert [line["n"] for line in lines(path)] == [1, 2, 3]
    assert list(found(path)) == []


def test_a_full_disk_fails_nothing_and_is_said_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    full = True
    write_now = os.write

    def refuse(handle: int, data: bytes) -> int:
        if full and len(data) > 200:
            write_now(handle, bytes(data[:50]))
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_now(handle, data)

    monkeypatch.setattr(os, "write", refuse)
    told = threading.Event()

    def tell(sentence: str) -> None:
        said.append(sentence)
        told.set()

    written = log(path, warn=tell)
    written.add(call(1))
    written.add(call(2))
    assert told.wait(30)
    full = False
    written.add(call(4))
    written.close(30)
    assert len(said) == 1
    assert "No space left on device" in said[0]
    first = lines(path)[0]
    assert first["n"] == 1
    assert int(str(first["lost"])) >= 1
    assert "could not be written at the time" in " ".join(found(path))
    head = read_head(str(path))
    assert head is not None
    assert head.size == path.stat().st_size


def test_more_calls_than_can_wait_are_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "WAITING", 2)
    written = log(path)
    monkeypatch.setattr(written._queue, "_wake", threading.Event())
    written._queue._wake.set()  # so that nothing is written yet
    for n in range(5):
        written.add(call(n))
    assert (len(written._queue.items), written._queue.lost) == (2, 3)


@pytest.mark.parametrize("arguments", [b"null", b"[1]", b"{", b'{"\\ud800":1}', b'{"a":' + b"[" * 9_000, b""])
def test_odd_arguments_and_names_are_written_too(path: Path, arguments: bytes) -> None:
    written = log(path, values=True)
    written.add(call(arguments=arguments, tool="\u202e\n\x00"))
    written.close(30)
    assert len(lines(path)) == 1
    assert path.read_bytes().isascii()
    assert list(found(path)) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_its_place_is_not_followed(path: Path) -> None:
    path.parent.mkdir()
    target = path.parent / "target"
    target.write_text("")
    path.symlink_to(target)
    said: list[str] = []
    written = log(path, warn=said.append)
    written.add(call())
    written.close(30)
    assert len(said) == 1
    assert target.read_text() == ""


def test_the_standard_output_is_for_who_claims_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_stdout, "_claimed", False)
    config = AuditConfig(str(path), to="stdout")
    assert isinstance(open_destination(config, ""), FileWriter)
    audit_stdout.claim()
    assert isinstance(open_destination(config, ""), audit_stdout.StdoutWriter)


def test_on_the_standard_output_is_one_chain(capfd: pytest.CaptureFixture[str]) -> None:
    written = AuditLog(audit_stdout.StdoutWriter(), values=False, warn=print)
    for n in range(3):
        written.add(call(n))
    written.close(30)
    texts = capfd.readouterr().out.encode().splitlines()
    numbered = [(str(number), text) for number, text in enumerate(texts)]
    assert list(problems(numbered, lambda: Head(3, hash_of(texts[-1])))) == []
