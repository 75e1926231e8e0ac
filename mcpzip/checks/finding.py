"""What a check finds in the text of a server."""

import re
from typing import Literal

from msgspec import Struct

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.surface import Item, Kind

Severity = Literal["hard", "risky", "note"]
"""hard: no honest server is known to need it. risky: honest servers have it sometimes; a person should read
it. note: worth knowing."""

SEVERITIES: tuple[Severity, ...] = ("hard", "risky", "note")

MEANINGS = {
    "hidden.tags": "has tag characters, which no one can see and a model can read",
    "hidden.bidi": "has characters that change the direction of text, so that it looks other than it is",
    "hidden.zero-width": "has characters without width where no script needs them",
    "hidden.variation": "has variation selectors that select nothing, which can carry a message",
    "hidden.private-use": "has private-use characters, which have no meaning that anyone agreed on",
    "hidden.control": "has control characters, which can hide text on a terminal",
    "hidden.blank": "has many blank characters that push text out of sight",
    "instruction.override": "orders the model to ignore its other instructions",
    "instruction.secrecy": "orders the model to keep something from the user",
    "instruction.credentials": "orders the model to read a file of keys or passwords, or names such a file",
    "instruction.exfiltration": "orders the model to send on what it knows: the conversation, keys, files",
    "instruction.reroute": "orders the model to send messages or money elsewhere",
    "instruction.consent": "tells the model not to ask the user",
    "instruction.order": "gives the model an order that goes beyond this tool",
    "instruction.markup": "imitates the marks that separate the turns of a conversation",
    "encoded.payload": "has encoded text that decodes to a command or an order",
    "encoded.command": "tells the reader to run what is downloaded or decoded",
    "encoded.url": "has a URL or an image that contains a script",
    "names.lookalike": "is spelled with letters that look like others",
    "names.typosquat": "has nearly the name of another server",
    "names.other-tool": "says when or how to use a tool of another server",
    "names.near-copy": "is nearly the same as a tool of another server",
    "names.same-server": "offers the same tools as another server",
    "parameters.sink": "asks for text that its work doesn't need: the conversation, the system prompt",
    "capability.mismatch": "does or wants something that its name doesn't say",
    "ranking.praise": "asks to be chosen before other tools",
    "ranking.stuffing": "repeats words so that a search finds it",
    "size.large": "is so large that it crowds other text out of a model's context",
    "size.unread": "is too large or too deep to be checked whole",
    "question.secret": "asks by a form for what must not be asked for so: passwords, keys, tokens",
    "change.widened": "accepts more than before",
    "change.sink": "has a new parameter that takes any text",
    "change.hints": "says something else about what its call may do",
}
"""By check, what is wrong, as the end of a sentence that begins with the item."""

EXCERPT = 160
"""Characters of an excerpt."""
_AROUND = 60  # characters before a match

INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010fffd"
)
"""Characters without a shape, or with a different one in every font: the inside of a character class."""
_INVISIBLE = lazy_pattern(f"[{INVISIBLE}]")


class Finding(Struct, frozen=True):
    """What a check found in one item.

    check: a key of `MEANINGS`, the same in every version. kind, name: of the item. path: the JSON pointer
    (RFC 6901) of the field in its body. excerpt: of its text, at most `EXCERPT` characters and on one line;
    invisible characters are written as ``<U+200B>``.
    """

    check: str
    severity: Severity
    kind: Kind
    name: str
    path: str
    excerpt: str

    @property
    def meaning(self) -> str:
        """What is wrong, as the end of a sentence that begins with the item."""
        return MEANINGS[self.check]


class Hit(Struct, frozen=True):
    """A finding before its item is known. start, end: the place in the text."""

    check: str
    severity: Severity
    start: int = 0
    end: int = 0


def finding(item: Item, path: str, text: str, hit: Hit) -> Finding:
    """The finding for ``hit`` in the string ``text`` of ``item`` at ``path``."""
    return Finding(hit.check, hit.severity, item.kind, item.name, path, excerpt(text, hit.start, hit.end))


def excerpt(text: str, start: int = 0, end: int = 0) -> str:
    """The part of ``text`` around the characters ``start`` to ``end``, for people."""
    begin = max(0, start - _AROUND)
    shown = visible(text[begin : max(end, start + 1) + EXCERPT])
    shown = f"…{shown}" if begin else shown
    return shown if len(shown) <= EXCERPT else shown[: EXCERPT - 1] + "…"


def visible(text: str) -> str:
    """``text`` on one line, with the code points of its invisible characters."""
    return _INVISIBLE.sub(_code, text.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))


def _code(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"


def more_severe(one: Severity, other: Severity) -> Severity:
    """The worse of two severities."""
    return min(one, other, key=SEVERITIES.index)
