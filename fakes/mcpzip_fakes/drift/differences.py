"""Where two JSON values differ, by value or by shape (pure).

The rules:

1. A string with masked secrets equals every string that has other texts in the places of the masks; a mask
   alone equals every value.
2. Two strings that are JSON objects or arrays are compared as those, because many servers answer with JSON in
   a text.
3. By shape, only types and keys count. The elements of an array have one shape together: a key that all
   recorded elements have must be in all elements now. Null and an empty array say nothing of a shape.
4. The work is bounded: a path is at most `_DEPTH` long, and what is deeper is compared as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import UNSET

from mcpzip.cassettes.masks import fits_masks
from mcpzip_fakes.cassettes.messages import decoded

Path = tuple[str, ...]
Kind = Literal["added", "removed", "type", "value"]
Ignored = Callable[[Path], bool]

_DEPTH = 200
_JSON_IN_TEXT = 4 * 1024 * 1024
"""Characters of a string that is read as JSON."""


class Difference(NamedTuple):
    """One place. before, after: the values there, UNSET if there is none; by shape, lists of their types."""

    path: Path
    kind: Kind
    before: object
    after: object


def ignored_by(paths: Iterable[str]) -> Ignored:
    """Whether a path is at or below one of ``paths``, such as ``content.*.text``; ``*`` is any key or
    index."""
    patterns = [tuple(path.split(".")) for path in paths]

    def ignored(path: Path) -> bool:
        return any(
            len(pattern) <= len(path)
            and all(part in ("*", here) for part, here in zip(pattern, path, strict=False))
            for pattern in patterns
        )

    return ignored


def differences(before: object, after: object, ignored: Ignored, path: Path = ()) -> Iterator[Difference]:
    """Where the values differ, in the order of the first one."""
    stack: list[tuple[Path, object, object]] = [(path, before, after)]
    while stack:
        here, one, other = stack.pop()
        if ignored(here) or fits_mask(one, other):
            continue
        inner = (_container(one), _container(other))
        if inner[0] is not None and type(inner[0]) is type(inner[1]):
            one, other = inner
        if len(here) > _DEPTH:
            if not _equal(one, other):
                yield Difference(here, "value", one, other)
        elif isinstance(one, dict) and isinstance(other, dict):
            keys = [*one, *(key for key in other if key not in one)]
            stack += [((*here, key), one.get(key, UNSET), other.get(key, UNSET)) for key in reversed(keys)]
        elif isinstance(one, list) and isinstance(other, list):
            longest = max(len(one), len(other))
            stack += [((*here, str(n)), _at(one, n), _at(other, n)) for n in reversed(range(longest))]
        elif one is UNSET:
            yield Difference(here, "added", one, other)
        elif other is UNSET:
            yield Difference(here, "removed", one, other)
        elif json_type(one) != json_type(other):
            yield Difference(here, "type", one, other)
        elif one != other:
            yield Difference(here, "value", one, other)


def fits_mask(before: object, after: object) -> bool:
    """Whether ``before`` is a string with masked secrets, and ``after`` what it may have been."""
    if not isinstance(before, str) or after is UNSET:
        return False
    return fits_masks(before, after if isinstance(after, str) else None)


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except RecursionError:
        return False


def _at(values: Sequence[object], number: int) -> object:
    return values[number] if number < len(values) else UNSET


def json_type(value: object) -> str:
    """The name of the JSON type of ``value``."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _container(value: object) -> object:
    """The object or array that is the JSON text ``value``; None if it is no such text."""
    if not isinstance(value, str) or value.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return None
    if len(value) > _JSON_IN_TEXT:
        return None
    try:
        found = decoded(value.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


# By shape


class Shape:
    """The types of some values, the members of those that are objects, the elements of those that are arrays.

    always: the keys that all objects have; None without an object.
    """

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.members: dict[str, Shape] = {}
        self.always: set[str] | None = None
        self.elements: Shape | None = None
        self.masked = False

    def add(self, value: object, ignored: Ignored, path: Path) -> None:
        """Adds a value."""
        if ignored(path):
            self.masked = True
            return
        if isinstance(value, str) and fits_mask(value, ""):
            self.masked = True
        inner = _container(value)
        value = value if inner is None else inner
        self.types.add(json_type(value))
        if len(path) > _DEPTH:
            return
        if isinstance(value, dict):
            self.always = set(value) if self.always is None else self.always & set(value)
            for key, each in value.items():
                self.members.setdefault(key, Shape()).add(each, ignored, (*path, key))
        elif isinstance(value, list):
            self.elements = self.elements or Shape()
            for each in value:
                self.elements.add(each, ignored, (*path, "*"))


def shape_differences(
    before: object, after: object, ignored: Ignored, path: Path = ()
) -> Iterator[Difference]:
    """Where the shapes of the values differ."""
    one, other = Shape(), Shape()
    one.add(before, ignored, path)
    other.add(after, ignored, path)
    stack = [(path, one, other)]
    while stack:
        here, one, other = stack.pop()
        if one.masked or other.masked:
            continue
        known = one.types - {"null"}
        new = other.types - one.types
        if known and new:
            yield Difference(here, "type", sorted(one.types), sorted(other.types))
            continue
        if one.always is not None and other.always is not None:
            for key in sorted(one.always - other.always):
                if not ignored((*here, key)):
                    yield Difference((*here, key), "removed", sorted(one.members[key].types), UNSET)
            for key in sorted(set(other.members) - set(one.members)):
                if not ignored((*here, key)):
                    yield Difference((*here, key), "added", UNSET, sorted(other.members[key].types))
            stack += [
                ((*here, key), one.members[key], other.members[key])
                for key in sorted(set(one.members) & set(other.members), reverse=True)
            ]
        if one.elements is not None and other.elements is not None:
            stack.append(((*here, "*"), one.elements, other.elements))
