"""The log's files: what is written comes back, in order and within limits, and nothing that fails is felt."""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.system import event_log, log_writer
from mcpzip.system.event_log import LEVELS, Level, install, note, note_output
from mcpzip.system.log_files import LogEntry, LogReader, decoded, encoded, log_files
from mcpzip.system.log_writer import BURST, FILE_SIZE, LINE, LINES_AT_ONCE, TOTAL_SIZE, LogWriter

NAME = "config.json"
ENTRIES = st.builds(
    LogEntry,
    st.floats(0, 9e10),
    st.sampled_from(LEVELS),
    st.integers(0, 1 << 31),
    st.text(max_size=9),
    st.text(max_size=9),
    st.text(),
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "logs")


@pytest.fixture
def new_writer(folder: str) -> Iterator[Callable[..., LogWriter]]:
    made: list[LogWriter] = []

    def make(level: Level = "debug", **options: Callable[[str], str] | Callable[[str], None]) -> LogWriter:
        options.setdefault("redact", lambda text: text.replace("hunter2", "…"))
        made.append(LogWriter(folder, NAME, level, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.close(10)


def texts(folder: str) -> list[str]:
    return [entry.text for entry in LogReader(folder, NAME).read()]


@given(ENTRIES)
def test_an_entry_comes_back(entry: LogEntry) -> None:
    line = encoded(entry)
    assert decoded(line) == entry
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert all(32 <= each < 127 for each in line[:-1])


@given(st.binary())
def test_a_line_that_is_no_entry_is_left_out(line: bytes) -> None:
    assert decoded(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"at":1e999,"level":"info","pid":1,"server":"","event":"","text":""}',
        b'{"at":-1,"level":"info","pid":1,"server":"","event":"","text":""}',
        b'{"at":1,"level":"loud","pid":1,"server":"","event":"","text":""}',
        b'{"at":1,"level":"info","pid":1,"server":"","event":"","text":5}',
        b'{"at":1,"level":"info","pid":' + b"9" * 5_000 + b',"server":"","event":"","text":""}',
    ],
)
def test_a_strange_line_is_left_out(line: bytes) -> None:
    assert decoded(line) is None


def test_what_is_noted_is_in_the_file(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    writer = new_writer()
    writer.note("info", "slack", "started", "started with process id 5")
    writer.output("slack", "stderr", [b"listening", b"", b"  at caf\xc3\xa9\xff\r", b"token hunter2"])
    writer.output("slack", "stdout", [b"hello"])
    writer.close(10)
    found = LogReader(folder, NAME).read()
    assert [(one.level, one.server, one.event, one.text) for one in found] == [
        ("info", "slack", "started", "started with process id 5"),
        ("info", "slack", "stderr", "listening"),
        ("info", "slack", "stderr", "  at café\ufffd"),
        ("info", "slack", "stderr", "token …"),
        ("warning", "slack", "stdout", "hello"),
    ]
    assert {one.pid for one in found} == {os.getpid()}
    assert all(abs(one.at - time.time()) < 60 for one in found)
    if os.name != "nt":
        (file,) = log_files(folder, NAME)
        assert stat.S_IMODE(os.stat(os.path.join(folder, file)).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_only_what_is_important_enough_is_written(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    writer = new_writer("warning")
    for level in LEVELS:
        writer.note(level, "", "x", level)
    writer.output("slack", "stderr", [b"chatter"])
    writer.output("slack", "stdout", [b"wrong"])
    writer.close(10)
    assert texts(folder) == ["warning", "error", "wrong"]


def test_nothing_is_made_until_there_is_something_to_write(
    folder: str, new_writer: Callable[..., LogWriter]
) -> None:
    new_writer().close(10)
    assert not os.path.exists(folder)
    assert LogReader(folder, NAME).read() == []


def test_processes_at_the_same_time_lose_nothing(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    """Each has files of its own; here they differ in their process id only."""
    writers = [new_writer() for _ in range(4)]
    for number, writer in enumerate(writers):
        writer._pid = 1_000 + number

    def write(writer: LogWriter) -> None:
        for number in range(500):
            writer.note("info", "s", "x", str(number))

    threads = [threading.Thread(target=write, args=[writer]) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.close(10)
    found = LogReader(folder, NAME).read()
    for pid in range(1_000, 1_004):
        assert [one.text for one in found if one.pid == pid] == [str(number) for number in range(500)]
    assert [one.at for one in found] == sorted(one.at for one in found)


def test_a_process_keeps_two_files_and_its_last_entries(
    folder: str, new_writer: Callable[..., LogWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "FILE_SIZE", 4_096)
    writer = new_writer()
    for number in range(300):
        writer.note("info", "s", "x", f"{number:03} {'y' * 50}")
    writer.close(10)
    files = log_files(folder, NAME)
    assert len(files) == 2
    assert all(os.path.getsize(os.path.join(folder, file)) <= 4_096 for file in files)
    kept = [text[:3] for text in texts(folder)]
    assert kept == [f"{number:03}" for number in range(300 - len(kept), 300)]
    assert len(kept) > 30


def test_the_oldest_files_of_all_processes_are_removed(
    folder: str, new_writer: Callable[..., LogWriter]
) -> None:
    os.mkdir(folder)
    old = [f"{NAME}.20260101T00000{number}Z.{number}.0001.log" for number in range(3)]
    for number, file in enumerate(old):
        path = os.path.join(folder, file)
        with open(path, "wb") as opened:
            opened.truncate(TOTAL_SIZE // 2)
        os.utime(path, (number, number))
    other = [f"other.{old[0]}", "notes.txt", f"{NAME}.x.1.0001.log"]
    for file in other:
        Path(folder, file).write_bytes(b"")
    writer = new_writer()
    writer.note("info", "", "x", "hello")
    writer.close(10)
    left = log_files(folder, NAME)
    assert left[:-1] == old[2:]
    assert set(other) <= set(os.listdir(folder))


def test_a_file_that_another_process_removed_is_replaced(
    folder: str, new_writer: Callable[..., LogWriter]
) -> None:
    if os.name == "nt":
        pytest.skip("an open file can't be removed there")
    writer = new_writer()
    reader = LogReader(folder, NAME)
    writer.note("info", "", "x", "first")
    written(reader, 1)
    os.unlink(os.path.join(folder, log_files(folder, NAME)[0]))
    writer.note("info", "", "x", "second")
    writer.close(10)
    assert texts(folder) == ["second"]


def written(reader: LogReader, count: int) -> list[LogEntry]:
    found: list[LogEntry] = []
    until = time.monotonic() + 20
    while len(found) < count and time.monotonic() < until:
        found += reader.read()
    return found


def test_a_reader_sees_what_is_new(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    writer, reader = new_writer(), LogReader(folder, NAME)
    writer.note("info", "", "x", "first")
    assert [one.text for one in written(reader, 1)] == ["first"]
    assert reader.read() == []
    writer.note("info", "", "x", "second")
    assert [one.text for one in written(reader, 1)] == ["second"]


def test_a_line_is_read_when_it_is_whole(folder: str) -> None:
    os.mkdir(folder)
    line = encoded(LogEntry(5, "info", 1, "", "x", "whole"))
    path = Path(folder, f"{NAME}.20260101T000000Z.1.0001.log")
    path.write_bytes(b"no entry\n" + line[:20])
    reader = LogReader(folder, NAME)
    assert reader.read() == []
    with path.open("ab") as file:
        file.write(line[20:])
    assert [one.text for one in reader.read()] == ["whole"]


def test_a_full_disk_costs_only_lines(
    folder: str, new_writer: Callable[..., LogWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    writer, reader = new_writer(warn=warned.append), LogReader(folder, NAME)
    writer.note("info", "", "x", "before")
    assert len(written(reader, 1)) == 1
    failed, real, full = threading.Event(), os.write, True

    def write(file: int, data: bytes) -> int:
        if not full:
            return real(file, data)
        if len(data) > 10:
            return real(file, data[:10])  # a part of it has room
        failed.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    writer.note("info", "", "x", "lost")
    assert failed.wait(20)
    full = False
    writer.note("info", "", "x", "after")
    writer.close(10)
    assert texts(folder) == ["before", "(lines that could not be written: 1)", "after"]
    assert warned == [f"{folder}: the log can't be written (No space left on device)."]


def test_a_folder_that_can_not_be_made_costs_only_the_log(
    tmp_path: Path, new_writer: Callable[..., LogWriter]
) -> None:
    (tmp_path / "logs").write_text("a file")
    warned: list[str] = []
    writer = new_writer(warn=warned.append)
    writer.note("info", "", "x", "lost")
    writer.close(10)
    assert len(warned) == 1


def test_a_server_that_writes_too_much_is_cut(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    writer = new_writer()
    for _ in range(100):
        writer.output("loud", "stderr", [b"x" * 10_000] * 50)
    writer.output("quiet", "stderr", [b"fine"] * 2 * LINES_AT_ONCE)
    writer.close(10)
    found = LogReader(folder, NAME).read()
    loud = [one.text for one in found if one.server == "loud"]
    assert all(len(text) == LINE for text in loud)
    assert sum(map(len, loud)) < BURST < FILE_SIZE
    quiet = [one.text for one in found if one.server == "quiet"]
    assert quiet == ["(lines left out, because it writes too much: 200)", *["fine"] * LINES_AT_ONCE]


def test_a_secret_at_the_cut_is_not_written_in_part(
    folder: str, new_writer: Callable[..., LogWriter]
) -> None:
    secret = "s3cret" * 20
    writer = new_writer(redact=lambda text: text.replace(secret, "…"))
    writer.note("info", "", "x", (secret * 1_000)[7:])
    writer.close(10)
    (text,) = texts(folder)
    assert "s3cret" not in text[len(secret) :]


def test_without_a_log_nothing_happens(folder: str, new_writer: Callable[..., LogWriter]) -> None:
    note("error", "", "x", "nowhere")
    note_output("s", "stderr", [b"nowhere"])
    assert event_log.more_about("s") == ""
    writer = new_writer()
    install(writer, lambda server: f"mcpzip logs {server}")
    try:
        assert event_log.more_about("s") == "More: mcpzip logs s"
        note("error", "", "x", "here")
    finally:
        install(None)
    writer.close(10)
    assert texts(folder) == ["here"]
