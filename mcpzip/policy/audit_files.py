"""The files of the audit log: their names, their lines, and whether anything in them was changed.

A line is a JSON object of ASCII characters. It has a number ``n``, and ``prev``, the SHA-256 of the line
before it, without its line break. So a changed, a removed or an added line shows. A cut at the beginning or
the end shows by the file ``.head`` beside the log, which has the numbers of the first and the last line that
there should be. Whoever can write both files can write a whole new log: keep a copy elsewhere.

A file that is full is renamed: ``audit.jsonl`` to ``audit.jsonl.000000000001``, the number of its first line.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from mcpzip.system.bounded_read import open_regular

NOTHING = "0" * 64
"""``prev`` of the first line."""
LONGEST_LINE = 1 << 20
"""Bytes of a line that are read: more than mcpzip writes."""


class Head(msgspec.Struct):
    """n, hash: the number and the hash of the last line. first: the number of the first line that is kept.
    begins: of the first line of the newest file. size: of that file, in bytes.
    """

    n: int = 0
    hash: str = NOTHING
    first: int = 1
    begins: int = 1
    size: int = 0


class AuditLine(msgspec.Struct, omit_defaults=True):
    """One call. at: Unix seconds. pid: of the mcpzip that wrote it. client: name, version, process id and
    number of the client. risk: the classes of the tool. decision: what the policy says, by the key path
    ``rule``; approved_by: how a person allowed it. definition, arguments_sha256: hashes. ms: how long it
    took. arguments: the names of its arguments. values: the arguments, only if the config asks for that.
    lost: calls before it that could not be written. findings: the checks that find something in its error,
    and in what its server asked during it. principal: issuer, subject and name of who made it, if people sign
    in.
    """

    n: int
    prev: str
    at: float
    pid: int
    client: dict[str, object]
    server: str
    tool: str
    risk: tuple[str, ...]
    decision: str
    outcome: str
    ms: float
    definition: str
    arguments: tuple[str, ...] = ()
    arguments_sha256: str = ""
    rule: str = ""
    approved_by: str = ""
    values: object = None
    lost: int = 0
    findings: tuple[str, ...] = ()
    principal: dict[str, str] = {}


def encoded(line: AuditLine) -> bytes:
    """``line`` as JSON without a line break, all in ASCII."""
    return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode()


def decoded(text: bytes) -> AuditLine | None:
    """The line with this text; None if it is none."""
    try:
        return msgspec.convert(json.loads(text), AuditLine)  # msgspec's decoder refuses lone surrogates
    except (ValueError, RecursionError):
        return None


def hash_of(text: bytes) -> str:
    """What the line after ``text`` says of it."""
    return hashlib.sha256(text).hexdigest()


def full_file(path: str, first: int) -> str:
    """The name of a full file of the log at ``path``. first: the number of its first line."""
    return f"{path}.{first:012}"


def files(path: str) -> list[str]:
    """The files of the log at ``path``, the oldest first."""
    folder, name = os.path.split(path)
    pattern = re.compile(re.escape(name) + r"\.\d{12}")
    try:
        full = sorted(filter(pattern.fullmatch, os.listdir(folder)))
    except OSError:
        full = []
    return [*(os.path.join(folder, each) for each in full), *([path] if os.path.exists(path) else [])]


def read_head(path: str) -> Head | None:
    """What ``.head`` says of the log at ``path``; None if there is none, or none that can be read."""
    try:
        with open(f"{path}.head", "rb") as file:
            return msgspec.json.decode(file.read(4096), type=Head)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


class FileReader:
    """Reads the log at ``place``, the path of its file. All raise OSError."""

    def __init__(self, place: str) -> None:
        self.place = place

    def newest(self, begin: float) -> Iterator[AuditLine]:
        """The lines that can be read, the newest first. begin: a Unix time; calls that began earlier may be
        left out.
        """
        for file in reversed(files(self.place)):
            yield from filter(None, map(decoded, reversed([text for _, text in _texts(file)])))

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """A name for each line, for sentences, and its text, the oldest first."""
        for file in files(self.place):
            yield from ((f"{file}, line {number}", text) for number, text in _texts(file))

    def head(self) -> Head | None:
        """The numbers of the first and the last line that there should be; None if that can't be read."""
        return read_head(self.place)


def _texts(file: str) -> Iterator[tuple[int, bytes]]:
    handle, _ = open_regular(file)
    with os.fdopen(handle, "rb") as opened:
        number = 0
        while text := opened.readline(LONGEST_LINE):
            number += 1
            yield number, text.rstrip(b"\n")


def problems(lines: Iterable[tuple[str, bytes]], read_head: Callable[[], Head | None]) -> Iterator[str]:
    """What is wrong with a log, a sentence each; nothing if it is whole. lines: see `FileReader.texts`.
    read_head: is called after the last of them. Raises what they raise.
    """
    last, before, first = 0, NOTHING, 0
    for where, text in lines:
        line = decoded(text)
        if line is None:
            yield f"{where}: it can't be read."
            continue
        if not first:
            first = line.n
        elif line.n != last + 1:
            yield f"{where}: it is call {line.n:,}, but call {last + 1:,} has to follow on {last:,}."
        if line.prev != before and (last or line.n == 1):
            yield f"{where}: the line before it is not the one that it was written after."
        if line.lost:
            yield f"{where}: {line.lost:,} calls before it could not be written at the time."
        last, before = line.n, hash_of(text)
    head = read_head()
    if head is None:
        if last:
            yield "What the last line is can't be read, so a cut at the beginning or the end would not show."
    elif head.n > last:
        yield f"The log ends with call {last:,}, but the last one was {head.n:,}."
    elif head.first < (first or head.n + 1):
        yield f"The log begins with call {first:,}, but {head.first:,} should be in it."
    elif head.n == last and head.hash != before:
        yield "The last line is not the one that was written."
