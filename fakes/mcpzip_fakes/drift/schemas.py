"""Where two JSON schemas differ, and for whom that breaks something (pure).

The rule: a client *writes* what an input schema describes, so less that is accepted breaks it. It *reads*
what an output schema describes, so less that is promised breaks it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from mcpzip_fakes.drift.differences import fits_mask
from mcpzip_fakes.drift.drift import Severity, shown, was_and_is
from mcpzip_fakes.request import as_object

_DEPTH = 50
_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")


class SchemaDrift(NamedTuple):
    """One difference. kind: in fixed words, such as ``property-removed``."""

    severity: Severity
    kind: str
    path: str
    what: str
    before: object
    after: object


def schema_drifts(before: object, after: object, path: str, *, written: bool) -> Iterator[SchemaDrift]:
    """Where the schemas differ. path: that of the schemas. written: whether a client writes it (an input)."""
    stack: list[tuple[str, object, object, int]] = [(path, before, after, 0)]
    while stack:
        here, one, other, depth = stack.pop()
        if one == other:
            continue
        if not isinstance(one, dict) or not isinstance(other, dict) or depth > _DEPTH:
            severity: Severity = "breaking" if other is False and written else "changed"
            yield SchemaDrift(severity, "schema", here, was_and_is(one, other), one, other)
            continue
        for key in [*one, *(key for key in other if key not in one)]:
            at, old, new = f"{here}.{key}", one.get(key, UNSET), other.get(key, UNSET)
            if old == new or fits_mask(old, new):
                continue
            if key == "properties":
                yield from _properties(one, other, at, written)
            if key in _NAMED:
                both = as_object(old).keys() & as_object(new).keys()
                stack += [
                    (f"{at}.{name}", as_object(old)[name], as_object(new)[name], depth + 1)
                    for name in sorted(both, reverse=True)
                ]
            elif key == "required":
                yield from _required(one, other, at, written)
            elif key in _SCHEMA and isinstance(old, dict) and isinstance(new, dict):
                stack.append((at, old, new, depth + 1))
            elif key in _SCHEMAS and isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
                pairs = enumerate(zip(old, new, strict=True))
                stack += [(f"{at}.{n}", one, other, depth + 1) for n, (one, other) in pairs]
            elif key == "enum" and isinstance(old, list) and isinstance(new, list):
                yield from _enum(old, new, at, written)
            else:
                kind = {"type": "type", "description": "description"}.get(key, "schema")
                severity = _severity(key, old, new, written)
                yield SchemaDrift(severity, kind, at, was_and_is(old, new), old, new)


def _severity(key: str, old: object, new: object, written: bool) -> Severity:
    if key == "type":
        one, other = (set(_as_list(value)) for value in (old, new))
        return "changed" if (one < other if written else other < one) else "breaking"
    if key == "additionalProperties" and new is False and written:
        return "breaking"
    return "changed"


def _as_list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _properties(
    one: dict[str, object], other: dict[str, object], path: str, written: bool
) -> Iterator[SchemaDrift]:
    old, new = as_object(one.get("properties")), as_object(other.get("properties"))
    needed = other.get("required")
    for name in old:
        if name not in new:
            yield SchemaDrift(
                "breaking", "property-removed", f"{path}.{name}", "the property is gone", old[name], UNSET
            )
    for name in new:
        if name not in old:
            required = isinstance(needed, list) and name in needed
            said = "the property is new" + (" and required" if required else "")
            severity: Severity = "breaking" if required and written else "added"
            yield SchemaDrift(severity, "property-added", f"{path}.{name}", said, UNSET, new[name])


def _required(
    one: dict[str, object], other: dict[str, object], path: str, written: bool
) -> Iterator[SchemaDrift]:
    """Of properties that both have; a new one is told by `_properties`."""
    lists = (one.get("required"), other.get("required"))
    old, new = ([str(name) for name in each] if isinstance(each, list) else [] for each in lists)
    both = as_object(one.get("properties")).keys() & as_object(other.get("properties")).keys()
    for name in new:
        if name in both and name not in old:
            severity: Severity = "breaking" if written else "added"
            yield SchemaDrift(severity, "required", f"{path}.{name}", "is required now", UNSET, name)
    for name in old:
        if name in both and name not in new:
            severity = "changed" if written else "breaking"
            yield SchemaDrift(severity, "required", f"{path}.{name}", "is not required now", name, UNSET)


def _enum(old: list[object], new: list[object], path: str, written: bool) -> Iterator[SchemaDrift]:
    gone = [value for value in old if value not in new]
    more = [value for value in new if value not in old]
    if gone:
        severity: Severity = "breaking" if written else "changed"
        yield SchemaDrift(severity, "enum", path, f"no longer has {shown(gone)}", gone, UNSET)
    if more:
        severity = "added" if written else "changed"
        yield SchemaDrift(severity, "enum", path, f"also has {shown(more)}", UNSET, more)
    if not gone and not more:
        yield SchemaDrift("changed", "enum", path, "has another order", old, new)
