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

Row = tuple["ShownMessage | None", "ShownMessage | None"]


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message or heading. label: the method of the request, or of the answered request; sent: whether the
    client sent it, None for a remark; at: seconds; body: the message as it is shown."""

    label: str
    sent: bool | None
    at: float
    body: str

    def __str__(self) -> str:
        mark = "·" if self.sent is None else "→" if self.sent else "←"
        return f"{mark} {self.label}".rstrip()


def side(transcripts: Sequence[Transcript]) -> list[ShownMessage]:
    """All messages of ``transcripts`` in their order, with headings if there are several transcripts."""
    messages: list[ShownMessage] = []
    for number, transcript in enumerate(transcripts, 1):
        if len(transcripts) > 1:
            messages.append(ShownMessage(f"connection {number}", None, 0.0, ""))
        messages += _conversation(transcript)
    return messages


def rows(left: Sequence[ShownMessage], right: Sequence[ShownMessage]) -> Iterator[Row]:
    """The messages of both sides in rows: messages with the same direction and label share a row."""
    left_keys, right_keys = (
        [(message.sent, message.label) for message in messages] for messages in (left, right)
    )
    for tag, i, j, k, m in SequenceMatcher(None, left_keys, right_keys, autojunk=False).get_opcodes():
        if tag == "replace" and not _alike(left[i:j], right[k:m]):
            yield from ((message, None) for message in left[i:j])
            yield from ((None, message) for message in right[k:m])
        else:
            yield from zip_longest(left[i:j], right[k:m])


def show(console: Console, titles: tuple[str, str], rows: Iterable[Row]) -> None:
    """Print two columns, each half as wide as ``console``."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)
    for title in titles:
        table.add_column(Text(printable(title)), ratio=1, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(message) for message in row))
    console.print(table)


def show_one(console: Console, title: str, messages: Iterable[ShownMessage]) -> None:
    """Print one column."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)
    table.add_column(Text(printable(title)), ratio=1, overflow="fold")
    for message in messages:
        table.add_row(_cell(message))
    console.print(table)


def shown(raw: bytes) -> str:
    """A readable message: JSON on several lines unless it is short; of a very long message the beginning and
    the end."""
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


def _conversation(transcript: Transcript) -> Iterator[ShownMessage]:
    methods: dict[tuple[bool, str], str] = {}
    for message in transcript.messages:
        label = "" if message.sent is None else _label(message, methods)
        yield ShownMessage(label, message.sent, message.at, shown(message.raw))


def _label(message: Message, methods: dict[tuple[bool, str], str]) -> str:
    """The kind of ``message`` and its method. methods: of earlier requests, by direction and id."""
    try:
        fields = msgspec.json.decode(message.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "not JSON"
    if not isinstance(fields, dict):
        return "no message"
    number, method = repr(fields.get("id")), fields.get("method")
    if isinstance(method, str):
        if "id" in fields:
            methods[bool(message.sent), number] = method
        return printable(method)
    kind = "error" if "error" in fields else "answer"
    return printable(f"{kind} to {methods.get((not message.sent, number), number)}")


def _alike(left: Sequence[ShownMessage], right: Sequence[ShownMessage]) -> bool:
    """Whether the messages can share rows: as many, with the same directions."""
    return [message.sent for message in left] == [message.sent for message in right]


def _cell(message: ShownMessage | None) -> Text:
    if message is None:
        return Text("")
    head = Text(str(message), style="bold")
    if message.body:
        head.append(f"  {message.at:.3f} s", style="dim not bold")
        head.append(f"\n{message.body}\n", style="not bold")
    return head
