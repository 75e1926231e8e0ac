"""Edits JSON with comments and trailing commas (JSONC, as in VS Code and Zed) in place (pure).

The rule: an edit changes only the members that it names. Comments, order, indentation, line endings and other
members keep their bytes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_DEPTH = 100
"""Maximum levels of nesting."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v\u00a0\ufeff]+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<scalar>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)
    |(?P<mark>[{}\[\],:])""",
    re.VERBOSE | re.DOTALL,
)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\n])*\*/[ \t]*(?=\r?\n))")
"""A comment after which the line ends."""
_INDENT = re.compile(r"\n([ \t]+)\S")


class JsoncError(ValueError):
    """The text is not JSONC. line, column: of the mistake, counted from 1."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object. start, end: offsets in characters of its key and after its value."""

    key: str
    start: int
    end: int
    value: "Value"


@dataclass(frozen=True, slots=True)
class Value:
    """A value at the offsets ``start`` to ``end``. data: as from `json`. members: of an object; else None."""

    start: int
    end: int
    data: object
    members: tuple[Member, ...] | None = None

    def get(self, key: str) -> "Value | None":
        """The value of the last member ``key``, as in `json`; None if there is none."""
        found = [member.value for member in self.members or () if member.key == key]
        return found[-1] if found else None

    def at(self, path: Sequence[str]) -> "Value | None":
        """The value at ``path``, a sequence of keys, or None."""
        value: Value | None = self
        for key in path:
            value = value.get(key) if value is not None else None
        return value


def parse(text: str) -> Value:
    """The value in ``text``. An empty text is an empty object. Raises JsoncError."""
    parser = _Parser(text)
    if parser.kind == "end":
        return Value(len(text), len(text), {}, ())
    value = parser.value(0)
    if parser.kind != "end":
        raise parser.error("there is something after the end of the value")
    return value


def edited(text: str, path: Sequence[str], remove: Sequence[str], add: Mapping[str, object]) -> str:
    """``text`` without the members ``remove`` of the object at ``path``, and with the members ``add`` in it.

    A `str` in ``add`` is JSON text from `member_text`; other values are written in the style of ``text``.
    Missing objects on the path are created. An existing member is replaced in its place; new members take the
    place of the first removed one, or come last. Raises JsoncError, and ValueError if a value on the path is
    not an object.
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
        raise ValueError(f"{'.'.join(path)} is not an object")
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
    """The text of ``value`` for `edited`: its lines are indented from column 0."""
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
    """The indentation of one level in ``text``: the shortest one in it, or two spaces."""
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

    def written(value: str) -> str:
        if inline:
            return json.dumps(json.loads(value), ensure_ascii=False)
        return _indented(value, inner, newline)

    result: list[tuple[str, str, str]] = []
    index: int | None = None
    existing = {member.key for member in members}
    for member, (before, body, after) in zip(members, pieces, strict=True):
        if member.key in add:
            head = text[member.start : member.value.start]
            result.append((before, head + written(add[member.key]), after))
        elif member.key in remove:
            index = len(result) if index is None else index
        else:
            result.append((before, body, after))
    index = len(result) if index is None else index
    for key, value in add.items():
        if key not in existing:
            before = newline + inner if not inline else " " if index else ""
            result.insert(index, (before, f"{json.dumps(key, ensure_ascii=False)}: {written(value)}", ""))
            index += 1
    if not result:
        return "{" + (tail if tail.strip() else "") + "}"
    if not pieces:
        tail = tail.rstrip(" \t\r\n") + newline + outer
    out = ["{"]
    for number, (before, body, after) in enumerate(result):
        comma = "," if number < len(result) - 1 or trailing_comma else ""
        out.append(before + body + comma + after)
        following = result[number + 1][0] if number + 1 < len(result) else tail
        if after and not following.startswith(("\n", "\r\n")):
            out.append(newline)  # otherwise what follows would become part of the comment
    return "".join(out) + tail + "}"


def _pieces(text: str, parent: Value) -> tuple[list[tuple[str, str, str]], str, bool]:
    """The members of ``parent``, each as (text before it, its text, comment after it on its line); the text
    between the last one and the brace; whether a comma follows the last one.
    """
    pieces: list[tuple[str, str, str]] = []
    members, at, trailing = parent.members or (), parent.start + 1, False
    for member in members:
        before = text[at : member.start]
        comma = _comma(text, member.end, parent.end - 1)
        trailing = comma is not None
        end = member.end if comma is None else comma + 1
        between = "" if comma is None else text[member.end : comma]
        comment = _REST_OF_LINE.match(text, end, parent.end - 1)
        after = comment.group() if comment else ""
        pieces.append((before, text[member.start : member.end] + between, after))
        at = end + len(after)
    return pieces, text[at : parent.end - 1], trailing


def _comma(text: str, at: int, end: int) -> int | None:
    """The offset of the comma after a value that ends at ``at``; spaces and comments may precede it."""
    while at < end:
        found = _TOKEN.match(text, at, end)
        if found is None or found.lastgroup not in ("space", "comment"):
            return at if text[at] == "," else None
        at = found.end()
    return None


class _Parser:
    """A recursive descent parser. kind, token, start, end: of the next token; after the last, kind is
    "end"."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self.kind, self.token, self.start, self.end = "", "", 0, 0
        self._next()

    def error(self, reason: str) -> JsoncError:
        """The error at the next token."""
        return JsoncError(reason, self._text, self.start)

    def value(self, depth: int) -> Value:
        """Parses the value that begins at the next token. Raises JsoncError."""
        if depth > MAX_DEPTH:
            raise self.error(f"there are more than {MAX_DEPTH} levels")
        start = self.start
        if self.token == "{":
            return self._object(start, depth)
        if self.token == "[":
            return self._array(start, depth)
        if self.kind not in ("string", "scalar"):
            raise self.error("a value belongs here")
        data, end = self._scalar(), self.end
        self._next()
        return Value(start, end, data)

    def _object(self, start: int, depth: int) -> Value:
        members: list[Member] = []
        self._next()
        while self.token != "}":
            if self.kind != "string":
                raise self.error('a key in double quotes, or "}", belongs here')
            key, at = str(self._scalar()), self.start
            self._next()
            if self.token != ":":
                raise self.error('":" belongs here')
            self._next()
            value = self.value(depth + 1)
            members.append(Member(key, at, value.end, value))
            self._expect_separator("}")
        end = self.end
        self._next()
        return Value(start, end, {member.key: member.value.data for member in members}, tuple(members))

    def _array(self, start: int, depth: int) -> Value:
        items: list[object] = []
        self._next()
        while self.token != "]":
            items.append(self.value(depth + 1).data)
            self._expect_separator("]")
        end = self.end
        self._next()
        return Value(start, end, items)

    def _expect_separator(self, closing: str) -> None:
        if self.token == ",":
            self._next()
        elif self.token != closing:
            raise self.error(f'"," or "{closing}" belongs here')

    def _scalar(self) -> object:
        try:
            return json.loads(self.token)
        except ValueError as error:
            raise self.error("there is no such string or number in JSON") from error

    def _next(self) -> None:
        self.kind, self.token, self.start, self.end = next(self._tokens)

    def _tokenize(self) -> Iterator[tuple[str, str, int, int]]:
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
