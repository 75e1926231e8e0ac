"""Paths to parts of a JSON value (pure).

    items[0].title       a key, an index (from the end if negative), a key
    items[10:20].title   of each of these elements; [] stands for all
    ["a.b"]              a key that has other characters
    /items/0/title       a JSON pointer (RFC 6901): the same as the first

The rule: what is selected is the bytes that the server wrote. A path that leads nowhere is an error that says
what is there instead.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.results.slices import UnreadableError, elements, kind_of, members

LONGEST = 1_000
"""Characters of a path."""
SELECTED = 200_000
"""Values that one path selects at most."""
LOOKED_AT = 1_000_000
"""Elements and members that one path looks at: to find an element, all before it are, and all for one that is
counted from the end.
"""
_SHOWN_KEYS = 20

_STEP = lazy_pattern(
    r"""\.?\[\s*(?P<index>-?[0-9]{1,9})\s*\]"""
    r"""|\.?\[\s*(?:(?P<start>-?[0-9]{1,9})?\s*:\s*(?P<stop>-?[0-9]{1,9})?\s*)?\]"""
    r"""|\.?\[\s*(?P<quoted>"(?:[^"\\]|\\.)*"|'[^']*')\s*\]"""
    r"""|\.?(?P<key>[^.\[\]]+)"""
)


class PathError(ValueError):
    """The path can't be read, or leads nowhere. Its text is a sentence."""


class Slice(NamedTuple):
    """Elements of an array, as in Python: `[start:stop]`."""

    start: int | None = None
    stop: int | None = None


Step = str | int | Slice
T = TypeVar("T")


class Selection(NamedTuple):
    """What a path selects. value: JSON text; an array if the path has a slice. missing: how many of the
    elements lack what the rest of the path names, and are left out.
    """

    value: bytes
    missing: int = 0


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; none for the whole value. Raises PathError."""
    if len(text) > LONGEST:
        raise PathError(f"The path has more than {LONGEST:,} characters.")
    if text.startswith("/"):
        return tuple(_pointer(text))
    rest = text[1:] if text.startswith("$") else text
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        if at == len(rest) - 1 and rest[at] == ".":
            break
        found = _STEP.match(rest, at)
        if found is None:
            raise PathError(
                f"The path can't be read at {rest[at : at + 20]!r}. Write it as items[0].title, "
                'items[10:20].title or ["a.b"].'
            )
        steps.append(_step(found.groupdict()))
        at = found.end()
    return tuple(steps)


def select(value: bytes, steps: tuple[Step, ...]) -> Selection:
    """What ``steps`` select of the JSON text ``value``. Raises PathError."""
    values, missing, is_many = [value], 0, False
    budget = _Budget()
    for number, step in enumerate(steps):
        found: list[bytes] = []
        for each in values:
            try:
                found.extend(islice(_selected(each, step, budget), SELECTED + 1 - len(found)))
            except UnreadableError as error:
                raise PathError(f"The value can't be read: {error}.") from error
            except _TooManyError as error:
                raise PathError(
                    f"The path leads past more than {LOOKED_AT:,} values. Use 'chars' instead."
                ) from error
            except PathError as error:
                if not is_many:
                    raise PathError(f"{written(steps[:number]) or 'The result'} {error}") from error
                missing += 1
            if len(found) > SELECTED:
                raise PathError(f"The path selects more than {SELECTED:,} values. Use a slice.")
        if is_many and values and not found and not isinstance(step, Slice):
            what = written((step,))
            raise PathError(f"None of the {len(values):,} elements of {written(steps[:number])} has {what}.")
        values, is_many = found, is_many or isinstance(step, Slice)
    if is_many:
        return Selection(b"[%b]" % b",".join(values), missing)
    return Selection(values[0].strip(), missing)


def written(steps: tuple[Step, ...]) -> str:
    """The steps as a path."""
    text = ""
    for step in steps:
        if isinstance(step, Slice):
            is_all = step == Slice()
            start, stop = ("" if each is None else str(each) for each in step)
            text += "[]" if is_all else f"[{start}:{stop}]"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif step and not set(step) & set(".[]\"'/$") and step == step.strip():
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def _step(found: dict[str, str | None]) -> Step:
    if (key := found["key"]) is not None:
        return key.strip()
    if (quoted := found["quoted"]) is not None:
        try:
            return str(json.loads(quoted)) if quoted.startswith('"') else quoted[1:-1]
        except ValueError as error:
            raise PathError(f"{quoted} is not a JSON string.") from error
    if (index := found["index"]) is not None:
        return int(index)
    start, stop = (None if found[name] is None else int(found[name] or 0) for name in ("start", "stop"))
    return Slice(start, stop)


def _pointer(text: str) -> Iterator[Step]:
    for part in text[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        yield int(key) if key.isascii() and key.isdigit() and len(key) < 10 else key


class _TooManyError(Exception):
    """The path looks at too many values."""


class _Budget:
    """How many more values may be looked at."""

    def __init__(self) -> None:
        self._left = LOOKED_AT

    def over(self, values: Iterable[T]) -> Iterator[T]:
        """``values``, each of which is counted. Raises _TooManyError."""
        for value in values:
            self._left -= 1
            if self._left < 0:
                raise _TooManyError
            yield value


def _selected(value: bytes, step: Step, budget: _Budget) -> Iterator[bytes]:
    kind = kind_of(value)
    if isinstance(step, Slice):
        if kind != "array":
            raise PathError(f"is of type {kind}, not an array.")
        yield from _sliced(value, step, budget)
    elif kind == "object":
        yield _member(value, str(step), budget)
    elif kind == "array" and isinstance(step, int):
        yield _element(value, step, budget)
    elif kind == "array":
        raise PathError(f"is an array: write [].{step} for the {step!r} of each element, or [0].{step}.")
    else:
        raise PathError(f"is of type {kind}, and has no {step!r}.")


def _member(value: bytes, key: str, budget: _Budget) -> bytes:
    found = None
    names: list[str] = []
    for name, each in budget.over(members(value)):
        if name == key:
            found = each  # the last one counts
        elif len(names) <= _SHOWN_KEYS:
            names.append(name)
    if found is None:
        shown = ", ".join(repr(name[:60]) for name in names[:_SHOWN_KEYS])
        more = ", …" if len(names) > _SHOWN_KEYS else ""
        raise PathError(
            f"has no {key!r}. It has: {shown}{more}." if names else f"has no {key!r}: it is empty."
        )
    return found


def _element(value: bytes, index: int, budget: _Budget) -> bytes:
    at = index if index >= 0 else _length(value, budget) + index
    if at >= 0:
        for element in islice(budget.over(elements(value)), at, None):
            return element
    raise PathError(f"has no element {index}: it has {_length(value, budget):,}.")


def _sliced(value: bytes, step: Slice, budget: _Budget) -> Iterator[bytes]:
    start, stop = step
    if (start or 0) < 0 or (stop or 0) < 0:
        start, stop, _ = slice(start, stop).indices(_length(value, budget))
        stop = max(start, stop)
    return islice(budget.over(elements(value)), start or 0, stop)


def _length(value: bytes, budget: _Budget) -> int:
    return sum(1 for _ in budget.over(elements(value)))
