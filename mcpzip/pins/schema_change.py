"""What an input schema accepts that an earlier one did not (pure).

The rules:

1. A new property counts, although most schemas formally accept it anyway: a model fills in what is named.
2. A property that isn't required any more, or may be longer, doesn't count: it leads no data elsewhere.
3. Comparing takes `limits.SCHEMA_WORK` steps at most. What would take more is reported as not comparable.
"""

from collections.abc import Iterator

from mcpzip.model.limits import SCHEMA_DEPTH, SCHEMA_WORK
from mcpzip.model.quoting import quoted

_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("$defs", "definitions", "patternProperties", "dependentSchemas")
_SINGLE = ("items", "contains", "if", "then", "else")
_REASONS = 8
"""Reasons that are given at most."""


class _TooLarge(Exception):
    """There are more steps to take than are left."""


def widened(old: object, new: object) -> list[str]:
    """Why ``new`` accepts what ``old`` did not, as phrases; [] if it doesn't. Both are decoded schemas."""
    reasons: dict[str, None] = {}
    try:
        for reason in _Comparison().of(old, new, "", 0):
            reasons[reason] = None
            if len(reasons) == _REASONS:
                break
    except (_TooLarge, RecursionError):
        reasons["its schema is too large to compare"] = None
    return list(reasons)


class _Comparison:
    def __init__(self) -> None:
        self._left = SCHEMA_WORK

    def of(self, old: object, new: object, where: str, depth: int) -> Iterator[str]:
        """where: a phrase that names the place, "" for the arguments as a whole."""
        self._left -= 1
        if self._left < 0 or depth > SCHEMA_DEPTH:
            raise _TooLarge
        if old == new:
            return
        of = f" of {where}" if where else ""
        if not isinstance(old, dict) or not isinstance(new, dict):
            if old is not True and new is not False:
                yield f"it takes other values{' for ' + where if where else ''}"
            return
        yield from self._own(old, new, where)
        yield from self._properties(old, new, of, depth)
        if _is_open(new) and not _is_open(old):
            yield f"it takes parameters{of} that it doesn't name"
        for key in _SINGLE:
            if key in old or key in new:
                yield from self.of(old.get(key, {}), new.get(key, {}), where, depth + 1)
        for key in _MAPS:
            before, now = _object(old.get(key)), _object(new.get(key))
            for name, schema in now.items():
                if name in before:
                    yield from self.of(before[name], schema, quoted(name), depth + 1)
                elif key != "$defs" and key != "definitions":
                    yield f"it takes other parameters{of}: {quoted(name)}"
        for key in _LISTS:
            yield from self._alternatives(key, old.get(key), new.get(key), where, depth)

    def _own(self, old: "dict[str, object]", new: "dict[str, object]", where: str) -> Iterator[str]:
        for_what = f" for {where}" if where else ""
        if not _types(new) <= _types(old):
            yield f"it takes values of another type{for_what}"
        for key in ("enum", "const"):
            if key not in old:
                continue
            before = old[key] if key == "enum" else [old[key]]
            now = new.get("enum", [new["const"]] if "const" in new else None)
            if not isinstance(before, list) or not isinstance(now, list):
                yield f"it takes any value{for_what}, which were listed before"
            else:
                self._left -= len(before) + len(now)
                if self._left < 0:
                    raise _TooLarge
                known = {repr(each) for each in before}
                if added := [each for each in now if repr(each) not in known]:
                    yield f"it takes a new value{for_what}: {quoted(str(added[0]), 60)}"
        for key in ("pattern", "$ref", "not"):
            if key in old and new.get(key) != old[key]:
                yield f"{key!r} of {where or 'its arguments'} has changed"
        if "$ref" in new and "$ref" not in old:
            yield f"'$ref' of {where or 'its arguments'} is new"

    def _properties(
        self, old: "dict[str, object]", new: "dict[str, object]", of: str, depth: int
    ) -> Iterator[str]:
        before, now = _object(old.get("properties")), _object(new.get("properties"))
        for name, schema in now.items():
            if name in before:
                yield from self.of(before[name], schema, quoted(name), depth + 1)
            else:
                self._left -= 1
                yield f"it takes a new parameter{of}: {quoted(name)}"

    def _alternatives(self, key: str, old: object, new: object, where: str, depth: int) -> Iterator[str]:
        before = old if isinstance(old, list) else []
        now = new if isinstance(new, list) else []
        if key == "allOf" and len(now) < len(before):
            yield f"a condition of {where or 'its arguments'} is gone"
        elif key != "allOf" and (len(now) > len(before) if before else False):
            yield f"it takes other values{' for ' + where if where else ''}"
        for one, other in zip(before, now, strict=False):
            yield from self.of(one, other, where, depth + 1)


def _object(value: object) -> "dict[str, object]":
    return value if isinstance(value, dict) else {}


def _is_open(schema: "dict[str, object]") -> bool:
    return schema.get("additionalProperties", True) is not False


_ALL = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))


def _types(schema: "dict[str, object]") -> frozenset[str]:
    types = schema.get("type")
    found = frozenset(
        [types] if isinstance(types, str) else filter(_is_text, types) if isinstance(types, list) else _ALL
    )
    return found | {"integer"} if "number" in found else found


def _is_text(value: object) -> bool:
    return isinstance(value, str)
