"""Which parts of a kept result an agent reads to see given places of it (pure).

The rule: of the ways that mcpzip offers, the agent takes the one with the smallest part around the place:
elements or members at a path if they are short, else characters at a path; lines of a text, else characters.
A part has WINDOW characters or a little more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.traces.quotes import SPAN, Unescaped
from mcpzip.results.document import Document
from mcpzip.results.paths import Step, written
from mcpzip.results.slices import kind_of
from mcpzip.wire.json_iter import WHITESPACE, element_offsets, members_of
from mcpzip.wire.json_object import unquote

WINDOW = 1_500
"""Characters of a part."""
LINE = 2 * WINDOW
"""Characters of pieces that are read together, if they can't be fewer."""
MEMBERS = 100_000


@dataclass(frozen=True)
class Range:
    """Pieces or characters from ``first`` to ``last``, from 1 on. key: ``lines`` or ``chars``. path: to the
    value that has them, or "".
    """

    key: str
    first: int
    last: int
    path: str = ""

    def arguments(self) -> dict[str, str]:
        """Of the call that reads it."""
        path = {"path": self.path} if self.path else {}
        return {**path, self.key: f"{self.first}-{self.last}"}


def parts(document: Document, shown: str, quoted: Sequence[int], most: int) -> list[Range]:
    """The ranges that show all places ``quoted`` (offsets in ``shown``). most: characters that are read at
    once, if they stand together.
    """
    groups: list[tuple[int, int]] = []
    for offset in quoted:
        if groups and offset + SPAN <= groups[-1][0] + WINDOW:
            groups[-1] = (groups[-1][0], max(offset + SPAN, groups[-1][1]))
        else:
            groups.append((offset, offset + SPAN))
    find = _in_value if document.value else _in_text
    ranges = sorted({find(shown, *group) for group in groups}, key=lambda r: (r.path, r.key, r.first))
    return _joined(ranges, most)


def _joined(ranges: list[Range], most: int) -> list[Range]:
    """Without lines that others have, and with characters that overlap as one range of ``most`` at most."""
    found: list[Range] = []
    for each in ranges:
        last = found[-1] if found else None
        if last is None or (last.path, last.key) != (each.path, each.key):
            found.append(each)
        elif each.last <= last.last:
            continue
        elif each.key == "chars" and each.first <= last.last + 1 and each.last - last.first < most:
            found[-1] = Range(last.key, last.first, each.last, last.path)
        else:
            found.append(each)
    return found


def _in_text(text: str, start: int, end: int) -> Range:
    first = text.count("\n", 0, start)
    last = first + text.count("\n", start, end)
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    if stop - begin > LINE:
        return _around(start, end, len(text))
    while stop - begin < WINDOW and stop < len(text):  # further lines, as far as they are short
        following = text.find("\n", stop + 1)
        following = len(text) if following < 0 else following
        if following - begin > WINDOW:
            break
        stop, last = following, last + 1
    return Range("lines", first + 1, last + 1)


def _around(start: int, end: int, length: int, path: str = "") -> Range:
    """A window of characters around [start, end)."""
    spare = max(0, WINDOW - (end - start)) // 2
    begin = max(0, start - spare)
    return Range("chars", begin + 1, min(length, max(end, begin + WINDOW)), path)


def _in_value(shown: str, start: int, end: int) -> Range:
    value = shown.encode("utf-8")
    if not shown.isascii():
        start, end = len(shown[:start].encode("utf-8")), len(shown[:end].encode("utf-8"))
    steps: tuple[Step, ...] = ()
    while kind_of(value) in ("object", "array"):
        children = _children(value)
        within = [n for n, (_, begin, stop) in enumerate(children) if begin < end and stop > start]
        if not within:
            break
        first, last = within[0], within[-1]
        step, begin, stop = children[first]
        if first == last and stop - begin > WINDOW and kind_of(value[begin:stop]) != "number":
            steps, value = (*steps, step), value[begin:stop]
            start, end = max(0, start - begin), min(stop - begin, end - begin)
            continue
        if children[last][2] - begin > LINE:
            break
        while last + 1 < len(children) and children[last + 1][2] - begin <= WINDOW:
            last += 1
        return Range("lines", first + 1, last + 1, written(steps))
    path = written(steps)
    if kind_of(value) == "string":  # its characters are counted without escapes
        plain = unquote(value)
        before = _plain(value[:start])
        return _around(before, before + _plain(value[start:end]), len(plain), path)
    text = value.decode("utf-8", "replace")
    before = len(value[:start].decode("utf-8", "replace"))
    return _around(before, before + len(value[start:end].decode("utf-8", "replace")), len(text), path)


def _plain(piece: bytes) -> int:
    """How many characters the beginning of a JSON string has, without its quote."""
    return len(Unescaped(piece.decode("utf-8", "replace"), is_json=True).text.removeprefix('"'))


def _children(value: bytes) -> list[tuple[Step, int, int]]:
    """The step to each child of ``value``, and where it begins and ends; a member with its key."""
    if kind_of(value) == "array":
        return [(number, *at) for number, at in enumerate(element_offsets(value))]
    return [
        (unquote(value[m.start : value.rindex(b":", m.start, m.value)].strip(WHITESPACE)), m.value, m.end)
        for m in members_of(value, MEMBERS)
    ]
