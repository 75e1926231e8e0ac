"""Two conversations side by side.

The rule: the same message of both sides is in one row; only the middle of very long messages is left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcpzip_conformance.transcript import Message, Transcript, printable

LINE = 64
"""Characters up to which a message is shown as it was sent."""
SHORT = 1_200
"""Characters of JSON up to which a longer one is spread over lines."""
CUT = 800
"""Characters that are shown of what is longer still."""

Row = tuple["Said | None", "Said | None"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message. label: the request's method, or that of the answered request; sent: by the client, None
    for a remark; body: the message as it is shown."""

    label: str
    sent: bool | None
    at: float
    body: str

    def __str__(self) -> str:
        mark = "·" if self.sent is None else "→" if self.sent else "←"
        return f"{mark} {self.label}".rstrip()


def side(transcripts: Sequence[Transcript]) -> list[Said]:
    """All that was said in ``transcripts``, one after the other, under headings if there are several."""
    told: list[Said] = []
    for number, transcript in enumerate(transcripts, 1):
        if len(transcripts) > 1:
            told.append(Said(f"connection {number}", None, 0.0, ""))
        told += _conversation(transcript)
    return told


def rows(left: Sequence[Said], right: Sequence[Said]) -> Iterator[Row]:
    """``left`` and ``right`` with what is the same request, or the answer to it, in one row."""
    ours, theirs = ([(said.sent, said.label) for said in told] for told in (left, right))
    for what, i, j, k, m in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what == "replace" and not _alike(left[i:j], right[k:m]):
            yield from ((said, None) for said in left[i:j])
            yield from ((None, said) for said in right[k:m])
        else:
            yield from zip_longest(left[i:j], right[k:m])


def show(console: Console, titles: tuple[str, str], told: Iterable[Row]) -> None:
    """Print two columns, each half as wide as ``console``."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)
    for title in titles:
        table.add_column(Text(printable(title)), ratio=1, overflow="fold")
    for row in told:
        table.add_row(*(_cell(said) for said in row))
    console.print(table)


def show_one(console: Console, title: str, told: Iterable[Said]) -> None:
    """Print one column."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)
    table.add_column(Text(printable(title)), ratio=1, overflow="fold")
    for said in told:
        table.add_row(_cell(said))
    console.print(table)


def shown(raw: bytes) -> str:
    """A message for people: JSON over several lines unless it fits on one, and the ends of what is long."""
    text = raw.decode("utf-8", "backslashreplace")
    if len(text) > SHORT:
        return f"{printable(text[: CUT // 2])}\n… {len(raw)} bytes …\n{printable(text[-CUT // 2 :])}"
    if len(text) > LINE:
        try:
            spread = msgspec.json.format(raw, indent=2).decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return printable(text)
        return "\n".join(map(printable, spread.splitlines()))
    return printable(text)


def _conversation(transcript: Transcript) -> Iterator[Said]:
    asked: dict[tuple[bool, str], str] = {}
    for message in transcript.messages:
        label = "" if message.sent is None else _label(message, asked)
        yield Said(label, message.sent, message.at, shown(message.raw))


def _label(message: Message, asked: dict[tuple[bool, str], str]) -> str:
    """What ``message`` is. asked: the methods of the requests so far, by who asked and the request's id."""
    try:
        fields = msgspec.json.decode(message.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "not JSON"
    if not isinstance(fields, dict):
        return "no message"
    number, method = repr(fields.get("id")), fields.get("method")
    if isinstance(method, str):
        if "id" in fields:
            asked[bool(message.sent), number] = method
        return printable(method)
    kind = "error" if "error" in fields else "answer"
    return printable(f"{kind} to {asked.get((not message.sent, number), number)}")


def _alike(left: Sequence[Said], right: Sequence[Said]) -> bool:
    """Whether they may share rows: the same number, said by the same."""
    return [said.sent for said in left] == [said.sent for said in right]


def _cell(said: Said | None) -> Text:
    if said is None:
        return Text("")
    head = Text(str(said), style="bold")
    if said.body:
        head.append(f"  {said.at:.3f} s", style="dim not bold")
        head.append(f"\n{said.body}\n", style="not bold")
    return head
