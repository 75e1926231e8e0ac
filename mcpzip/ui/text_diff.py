"""The difference between two texts, line by line (pure).

The rule: texts that differ look different. A line has its end with it, characters that nobody sees are shown
as their numbers, and nothing is cut.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from mcpzip.pins.difference import distinct
from mcpzip.ui.held import Segment, segments, whole

_AROUND = 3
"""Lines around a change that are shown too."""
_WORK = 1_000_000
"""Lines of the one text times lines of the other that are compared with each other. Of more, first those are
found that occur once in each.
"""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENDS = {"\n": "", "\r\n": "", "\r": "<U+000D>", "": " (no line break at the end)"}
_OTHER_ENDS = {"\n": "<U+000A>", "\r\n": "<U+000D><U+000A>"}

Operation = tuple[Literal["equal", "other"], int, int, int, int]
"""Lines of the one text, from and to, and of the other, which are equal or not."""


class Line(msgspec.Struct, frozen=True):
    """A line. before, after: its number in each text, None where it is in the other one only. text: in
    parts.
    """

    kind: Literal["same", "removed", "added"]
    before: int | None
    after: int | None
    text: list[Segment]


class TextDiff(msgspec.Struct, frozen=True):
    """hunks: groups of lines with changes. added, removed: how many lines are."""

    hunks: list[list[Line]]
    added: int
    removed: int


def lines_of(text: str) -> list[str]:
    """The lines of ``text``, each with its end: LF, CR LF, CR, or nothing for the last one."""
    return _LINE.findall(text)


def text_diff(before: str, after: str) -> TextDiff:
    """What has to be done with ``before`` to have ``after``."""
    old, new = lines_of(before), lines_of(after)
    usual = _usual_end(old) if old else _usual_end(new)
    hunks: list[list[Line]] = []
    added = removed = 0
    for group in _groups(operations(old, new)):
        hunk: list[Line] = []
        for kind, begin, end, new_begin, new_end in group:
            if kind == "equal":
                for at in range(begin, end):
                    text = _same(old[at], usual)
                    hunk.append(Line("same", at + 1, new_begin + at - begin + 1, text))
            else:
                hunk += _replaced(old[begin:end], new[new_begin:new_end], begin, new_begin, usual)
                removed, added = removed + end - begin, added + new_end - new_begin
        hunks.append(hunk)
    return TextDiff(hunks, added, removed)


def operations(old: Sequence[str], new: Sequence[str]) -> list[Operation]:
    """Which lines are equal, and which are not, in order and without a gap."""
    begin = _common(old, new)
    end = _common(old[begin:][::-1], new[begin:][::-1])
    last, new_last = len(old) - end, len(new) - end
    found: list[Operation] = [("equal", 0, begin, 0, begin)]
    at, new_at = begin, begin
    large = (last - begin) * (new_last - begin) > _WORK
    anchors = _anchors(old[begin:last], new[begin:new_last]) if large else []
    for anchor, new_anchor in [*((begin + i, begin + j) for i, j in anchors), (last, new_last)]:
        found += _compared(old[at:anchor], new[new_at:new_anchor], at, new_at)
        at, new_at = anchor, new_anchor
        if anchor < last:
            found.append(("equal", at, at + 1, new_at, new_at + 1))
            at, new_at = at + 1, new_at + 1
    found.append(("equal", last, len(old), new_last, len(new)))
    return _merged(found)


def _compared(old: Sequence[str], new: Sequence[str], at: int, new_at: int) -> list[Operation]:
    """The operations for lines that begin at ``at`` and ``new_at``."""
    if len(old) * len(new) > _WORK:
        return [("other", at, at + len(old), new_at, new_at + len(new))]
    return [
        ("equal" if tag == "equal" else "other", at + i, at + j, new_at + k, new_at + m)
        for tag, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes()
    ]


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The most lines that occur once in each text, in an order that both have: where each stands (patience
    diff, by Bram Cohen).
    """
    counts, new_counts = Counter(old), Counter(new)
    where = {line: at for at, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, where[line]) for at, line in enumerate(old) if counts[line] == 1 and line in where]
    ends: list[int] = []  # for each length, the least end of a rising sequence of ``new``
    last: list[int] = []  # the pair of that end
    before: list[int] = []  # for each pair, the one before it in its sequence
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    found: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _merged(found: list[Operation]) -> list[Operation]:
    """``found`` without those that are empty, and with neighbours of one kind as one."""
    merged: list[Operation] = []
    for kind, i, j, k, m in found:
        if i == j and k == m:
            continue
        if merged and merged[-1][0] == kind:
            _, begin, _, new_begin, _ = merged.pop()
            merged.append((kind, begin, j, new_begin, m))
        else:
            merged.append((kind, i, j, k, m))
    return merged


def _groups(found: list[Operation]) -> list[list[Operation]]:
    """``found`` without the equal lines that are far from a change, in groups where such lines were."""
    groups: list[list[Operation]] = [[]]
    for number, (kind, i, j, k, m) in enumerate(found):
        if kind == "other":
            groups[-1].append((kind, i, j, k, m))
            continue
        head = min(_AROUND, j - i) if number else 0
        tail = min(_AROUND, j - i) if number < len(found) - 1 else 0
        if head + tail >= j - i:
            groups[-1].append((kind, i, j, k, m))
            continue
        if head:
            groups[-1].append((kind, i, i + head, k, k + head))
        if groups[-1]:
            groups.append([])
        if tail:
            groups[-1].append((kind, j - tail, j, m - tail, m))
    return [group for group in groups if any(kind == "other" for kind, *_ in group)]


def _replaced(old: list[str], new: list[str], at: int, new_at: int, usual: str) -> list[Line]:
    before, after = [_shown(line, usual) for line in old], [_shown(line, usual) for line in new]
    paired = len(before) == len(after)
    found: list[Line] = []
    for number, text in enumerate(before):
        parts = segments(text, after[number]) if paired else None
        found.append(Line("removed", at + number + 1, None, parts or [(whole(text), False)]))
    for number, text in enumerate(after):
        parts = segments(text, before[number]) if paired else None
        found.append(Line("added", None, new_at + number + 1, parts or [(whole(text), False)]))
    return found


def _same(line: str, usual: str) -> list[Segment]:
    return [(whole(_shown(line, usual)), False)]


def _shown(line: str, usual: str) -> str:
    """``line`` as it is shown. usual: the line break that needs no mention."""
    text = line.rstrip("\r\n")
    end = line[len(text) :]
    visible = "\t".join(distinct(part) for part in text.split("\t"))
    return visible + (_ENDS[end] if end in (usual, "", "\r") else _OTHER_ENDS[end])


def _usual_end(lines: Sequence[str]) -> str:
    crlf = sum(line.endswith("\r\n") for line in lines)
    return "\r\n" if crlf * 2 > len(lines) else "\n"


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines the two have in common at their begins."""
    differs = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differs, min(len(one), len(other)))
