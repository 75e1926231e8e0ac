"""JSON with comments and trailing commas (JSONC, as VS Code and Zed write it), edited in place (pure).

The rule: an edit changes the members it names and nothing else. Comments, order, indentation, line endings
and unknown members keep their bytes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

DEEPEST = 100
"""Levels of nesting that are read."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v\u00a0\ufeff]+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<scalar>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)
    |(?P<mark>[{}\[\],:])""",
    re.VERBOSE | re.DOTALL,
)
_INDENT = re.compile(r"\n([ \t]+)\S")


class JsoncError(ValueError):
    """The text is not JSONC. line, column: where, from 1."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object. start: of its key; end: after its value. Offsets in characters."""

    key: str
    start: int
    end: int
    value: "Value"


@dataclass(frozen=True, slots=True)
class Value:
    """One value and where it stands. data: as `json` has it. members: of an object, in order; else None."""

    start: int
    end: int
    data: object
    members: tuple[Member, ...] | None = None

    def get(self, key: str) -> "Value | None":
        """The last member called ``key``, which is the one that `json` takes; None where there is none."""
        found = [member.value for member in self.members or () if member.key == key]
        return found[-1] if found else None

    def at(self, path: Sequence[str]) -> "Value | None":
        """The value at ``path``, a sequence of keys."""
        value: Value | None = self
        for key in path:
            value = value.get(key) if value is not None else None
        return value


def parse(text: str) -> Value:
    """The value that ``text`` holds. An empty text is an empty object. Raises JsoncError."""
    reader = _Reader(text)
    if reader.kind == "end":
        return Value(len(text), len(text), {}, ())
    value = reader.value(0)
    if reader.kind != "end":
        raise reader.wrong("there is something after the end of the value")
    return value


def edited(text: str, path: Sequence[str], remove: Sequence[str], add: Mapping[str, object]) -> str:
    """``text`` in which the object at ``path`` has lost the members ``remove`` and gained ``add``.

    A value of ``add`` that is a `str` is JSON text, as `member_text` gives it; any other is written in the
    style of ``text``. Objects on the path that are missing are made. A member that exists is replaced where
    it stands; the others stand where the first removed member stood, else at the end. Raises JsoncError;
    ValueError when something on the path is no object.
    """
    root, unit = parse(text), _unit(text)
    raw = {
        key: value if isinstance(value, str) else json.dumps(value, indent=unit, ensure_ascii=False)
        for key, value in add.items()
    }
    parent, missing = root, list(path)
    while missing and (child := parent.get(missing[0])) is not None:
        parent, missing = child, missing[1:]
    if parent.members is None:
        raise ValueError(f"{'.'.join(path)} is no object")
    if missing:
        if not raw:
            return text
        value = _object(raw, unit)
        for key in reversed(missing[1:]):
            value = _object({key: value}, unit)
        remove, raw = (), {missing[0]: value}
    if root.start == root.end:  # an empty file
        return text + _object(raw, unit) + "\n"
    body = _rebuilt(text, parent, frozenset(remove), raw)
    return text[: parent.start] + body + text[parent.end :]


def member_text(text: str, value: Value) -> str:
    """The text of ``value`` as `edited` takes it: its lines indented from column 0."""
    start = text.rfind("\n", 0, value.start) + 1
    indent = re.match(r"[ \t]*", text[start : value.start])
    prefix = indent.group() if indent else ""
    return re.sub(rf"(\r?\n){re.escape(prefix)}", r"\1", text[value.start : value.end])


def _object(members: Mapping[str, str], unit: str) -> str:
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}: {_indented(text, unit)}" for key, text in members.items()
    ]
    return "{\n" + ",\n".join(unit + line for line in lines) + "\n}"


def _indented(text: str, indent: str, newline: str = "\n") -> str:
    return re.sub(r"\r?\n", lambda _: newline + indent, text)


def _unit(text: str) -> str:
    """What one level is indented by in ``text``: the least indentation there is, or two spaces."""
    found = _INDENT.findall(text[:65_536])
    return min(found, key=len) if found else "  "


def _rebuilt(text: str, parent: Value, remove: frozenset[str], add: Mapping[str, str]) -> str:
    """The text of the object ``parent`` after an edit."""
    members = parent.members or ()
    newline = "\r\n" if "\r\n" in text else "\n"
    start = text.rfind("\n", 0, parent.start) + 1
    line = re.match(r"[ \t]*", text[start : parent.start])
    outer = line.group() if line else ""
    pieces, tail, trailing_comma = _pieces(text, parent)
    lead = next((before for before, *_ in pieces if "\n" in before), None)
    if lead is not None:
        inner = lead[lead.rfind("\n") + 1 :]
        inner = inner[: len(inner) - len(inner.lstrip(" \t"))] if inner.strip(" \t") else inner
    else:
        inner = outer + _unit(text)
    inline = bool(pieces) and lead is None

    def made(key: str, value: str, position: int) -> tuple[str, str, str]:
        before = newline + inner if not inline else " " if position else ""
        if inline:
            value = json.dumps(json.loads(value), ensure_ascii=False)
        return before, f"{json.dumps(key, ensure_ascii=False)}: {_indented(value, inner, newline)}", ""

    kept: list[tuple[str, str, str]] = []
    place: int | None = None
    existing = {member.key for member in members}
    for member, (before, body, after) in zip(members, pieces, strict=True):
        if member.key in add:
            head = text[member.start : member.value.start]
            value = add[member.key]
            value = (
                json.dumps(json.loads(value), ensure_ascii=False)
                if inline
                else _indented(value, inner, newline)
            )
            kept.append((before, head + value, after))
        elif member.key in remove:
            place = len(kept) if place is None else place
        else:
            kept.append((before, body, after))
    new = [(key, value) for key, value in add.items() if key not in existing]
    where = len(kept) if place is None else place
    for offset, (key, value) in enumerate(new):
        kept.insert(where + offset, made(key, value, where + offset))
    if not kept:
        return "{" + (tail if tail.strip() else "") + "}"
    if not pieces:
        tail = tail.rstrip(" \t\r\n") + newline + outer
    out = ["{"]
    for number, (before, body, after) in enumerate(kept):
        comma = "," if number < len(kept) - 1 or trailing_comma else ""
        out.append(before + body + comma + after)
        following = kept[number + 1][0] if number + 1 < len(kept) else tail
        if after and not following.startswith(("\n", "\r\n")):
            out.append(newline)  # else the comment would swallow what follows
    return "".join(out) + tail + "}"


def _pieces(text: str, parent: Value) -> tuple[list[tuple[str, str, str]], str, bool]:
    """The members of ``parent`` as (what stands before it, the member, the comment after it on its line);
    what stands between the last one and the brace; whether a comma follows the last one.
    """
    pieces: list[tuple[str, str, str]] = []
    members, at, trailing = parent.members or (), parent.start + 1, False
    for member in members:
        before = text[at : member.start]
        comma = _comma(text, member.end, parent.end - 1)
        trailing = comma is not None
        end = member.end if comma is None else comma + 1
        between = "" if comma is None else text[member.end : comma]
        comment = re.match(r"[ \t]*(?://[^\r\n]*|/\*[^\n]*?\*/[ \t]*(?=\r?\n))", text[end : parent.end - 1])
        after = comment.group() if comment else ""
        pieces.append((before, text[member.start : member.end] + between, after))
        at = end + len(after)
    return pieces, text[at : parent.end - 1], trailing


def _comma(text: str, at: int, end: int) -> int | None:
    """Where the comma after a value that ends at ``at`` stands, past spaces and comments."""
    while at < end:
        found = _TOKEN.match(text, at, end)
        if found is None or found.lastgroup not in ("space", "comment"):
            return at if text[at] == "," else None
        at = found.end()
    return None


class _Reader:
    """The tokens of a text, one ahead. kind: of the next token; ``end`` after the last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._read()
        self.kind, self.token, self.start, self.end = "", "", 0, 0
        self._next()

    def wrong(self, reason: str) -> JsoncError:
        return JsoncError(reason, self._text, self.start)

    def value(self, depth: int) -> Value:
        """The value that begins here. Raises JsoncError."""
        if depth > DEEPEST:
            raise self.wrong(f"there are more than {DEEPEST} levels")
        start = self.start
        if self.token == "{":
            return self._object(start, depth)
        if self.token == "[":
            return self._array(start, depth)
        if self.kind not in ("string", "scalar"):
            raise self.wrong("a value belongs here")
        data, end = self._scalar(), self.end
        self._next()
        return Value(start, end, data)

    def _object(self, start: int, depth: int) -> Value:
        members: list[Member] = []
        self._next()
        while self.token != "}":
            if self.kind != "string":
                raise self.wrong('a key in double quotes, or "}", belongs here')
            key, at = str(self._scalar()), self.start
            self._next()
            if self.token != ":":
                raise self.wrong('":" belongs here')
            self._next()
            value = self.value(depth + 1)
            members.append(Member(key, at, value.end, value))
            self._separated("}")
        end = self.end
        self._next()
        return Value(start, end, {member.key: member.value.data for member in members}, tuple(members))

    def _array(self, start: int, depth: int) -> Value:
        items: list[object] = []
        self._next()
        while self.token != "]":
            items.append(self.value(depth + 1).data)
            self._separated("]")
        end = self.end
        self._next()
        return Value(start, end, items)

    def _separated(self, closing: str) -> None:
        if self.token == ",":
            self._next()
        elif self.token != closing:
            raise self.wrong(f'"," or "{closing}" belongs here')

    def _scalar(self) -> object:
        try:
            return json.loads(self.token)
        except ValueError as error:
            raise self.wrong("there is no such string or number in JSON") from error

    def _next(self) -> None:
        self.kind, self.token, self.start, self.end = next(self._tokens)

    def _read(self) -> Iterator[tuple[str, str, int, int]]:
        text, at = self._text, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise JsoncError(f"{text[at : at + 10]!r} is not JSON", text, at)
            if found.lastgroup not in ("space", "comment"):
                yield str(found.lastgroup), found.group(), at, found.end()
            at = found.end()
        while True:
            yield "end", "", at, at
