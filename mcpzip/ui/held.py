"""A held definition as a page shows it: field by field, what was approved and what is held (pure).

The rule: only what is shown whole may be approved (`ShownItem.whole`), and a form says what was shown
(`ShownItem.held`, `ShownItem.approved`).
"""

import hashlib
import unicodedata
from typing import Literal

import msgspec

from mcpzip.model.limits import SHOWN_MARKS
from mcpzip.pins.difference import FIELDS, differences, visible
from mcpzip.pins.review import HeldItem
from mcpzip.ui.limits import REVIEW_CHARACTERS, REVIEW_FIELDS, REVIEW_SIZE
from mcpzip.ui.rendering import ShownText

_PATH = 300
"""Characters of the path of a field."""
_REASONS = 20
_REASON = 500
"""Characters of a reason."""
_NAME = 200
"""Characters of a name in a title."""

Segment = tuple[ShownText, bool]
"""A part of a value, and whether it differs."""


class Field(msgspec.Struct, frozen=True):
    """A field that differs. before, after: None where there is no such field."""

    path: ShownText
    before: list[Segment] | None
    after: list[Segment] | None


class ShownItem(msgspec.Struct, frozen=True):
    """A held item. id: of the server's item, for URLs. held, approved: digests of what is shown, hexadecimal;
    ``approved`` is "" if nothing was approved. compared: whether there is something to compare with.
    missing: why no field is shown, "" if they are. whole: whether all that differs is shown.
    """

    id: str
    server: str
    kind: str
    name: ShownText
    since: float
    state: Literal["held", "rejected"]
    reasons: list[ShownText]
    fingerprint: str
    held: str
    approved: str
    compared: bool
    fields: list[Field]
    more: int
    missing: Literal["", "not stored", "too large"]
    whole: bool


def id_of(item: HeldItem) -> str:
    """Names ``item`` among those of its server, whatever characters its name has; hexadecimal."""
    return hashlib.sha256(item.key.encode("utf-8", "surrogatepass")).hexdigest()


def shown_item(item: HeldItem, *, compared: bool = True) -> ShownItem:
    """What is shown of ``item``. compared: whether with its fields; the list has none."""
    missing: Literal["", "not stored", "too large"] = ""
    fields: list[Field] = []
    more = 0
    if item.after is None:
        missing = "not stored"
    elif any(_is_large(text) for text in (item.before, item.after)):
        missing = "too large"
    elif compared:
        fields, more = _fields(item)
    return ShownItem(
        id_of(item),
        item.server,
        item.kind,
        _line(item.name, _NAME),
        item.hold.at,
        "rejected" if item.hold.rejected else "held",
        [_line(reason, _REASON) for reason in item.hold.reasons[:_REASONS]],
        item.fingerprint,
        item.hold.digest.hex(),
        "" if item.before is None else hashlib.sha256(item.before).hexdigest(),
        item.before is not None,
        fields,
        more,
        missing,
        bool(fields) and not more,
    )


def _is_large(text: bytes | None) -> bool:
    """Whether not all of ``text`` is compared."""
    return text is not None and (len(text) > REVIEW_SIZE or len(differences(None, text)) > FIELDS)


def _fields(item: HeldItem) -> tuple[list[Field], int]:
    """The fields that are shown, and how many are not."""
    found = differences(item.before, item.after)
    left, shown = REVIEW_CHARACTERS, list[Field]()
    for one in found[:REVIEW_FIELDS]:
        left -= len(one.path) + len(one.before or "") + len(one.after or "")
        if left < 0 or len(one.path) > _PATH:
            break
        before, after = segments(one.before, one.after), segments(one.after, one.before)
        shown.append(Field(whole(one.path), before, after))
    return shown, len(found) - len(shown)


def segments(text: str | None, other: str | None) -> list[Segment] | None:
    """``text``, in which hidden characters are visible, in parts: what it has in common with ``other`` at its
    begin and end, and what is between.
    """
    if text is None or other is None:
        return None if text is None else [(whole(text), False)]
    begin = _equal(text, other)
    end = _equal(text[begin:][::-1], other[begin:][::-1])
    parts = (text[:begin], False), (text[begin : len(text) - end], True), (text[len(text) - end :], False)
    return [(whole(part), differs) for part, differs in parts if part]


def _equal(text: str, other: str) -> int:
    """How many characters the two have in common at their begins."""
    differs = (at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two)
    return next(differs, min(len(text), len(other)))


def whole(text: str) -> ShownText:
    """``text``, in which hidden characters are visible already, with marks that would cover others as numbers
    too. Nothing is cut.
    """
    if text.isascii():
        return ShownText(text)
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
        shown.append(character if marks <= SHOWN_MARKS else f"<U+{ord(character):04X}>")
    return ShownText("".join(shown))


def _line(text: str, most: int) -> ShownText:
    short = visible(text[:most]).replace("\n", "<U+000A>")
    return whole(short + ("…" if len(text) > most else ""))
