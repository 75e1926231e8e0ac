"""What a change of an item lets a server do that it couldn't do before (pure).

The rule: a narrower schema, other spelling of the JSON, and harmless words are no finding. Whether the item
changed at all is not asked here.

Sources: CVE-2025-54136 (approved once, changed later), postmark-mcp (a blind copy in the sixteenth release),
the specification's defaults of the hints (2025-11-25, `ToolAnnotations`).
"""

import json
from collections import Counter
from collections.abc import Iterator

from mcpzip.checks.finding import Hit
from mcpzip.checks.parameters import FREE
from mcpzip.checks.texts import JsonMembers, member, words_of_name
from mcpzip.model import limits

_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_TESTS = (
    *("$ref", "$dynamicRef", "pattern", "format", "const", "multipleOf", "not", "propertyNames"),
    "contentMediaType",
)
_CHOICES = ("anyOf", "oneOf")
_NESTED = ("items", "additionalProperties", "contains")
_GROUPS = ("properties", "$defs", "definitions", "patternProperties")
_KNOWN = frozenset(
    (*_UPPER, *_LOWER, *_TESTS, *_CHOICES, *_NESTED, *_GROUPS, "allOf", "enum", "required", "type")
)
_ANNOTATIONS = frozenset(
    (
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
    )
)
"""Keywords by which a schema accepts no more and no less."""
_NO_TEST = {"uniqueItems": False, "unevaluatedProperties": True, "unevaluatedItems": True}
"""Values of keywords that exclude nothing."""
_SHOWN = 1_000
"""Characters of a value that are shown."""
_DEFAULTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
Change = tuple[str, str, Hit]
"""The path of the changed field, the text to show, the hit."""


def hints_changed(old: object, new: object) -> Iterator[Change]:
    """Each hint that changed. It is risky unless it only says now what its absence meant before."""
    before, after = member(old, "annotations"), member(new, "annotations")
    for hint, default in _DEFAULTS.items():
        was, now = member(before, hint), member(after, hint)
        if was == now:
            continue
        spoken = now is default and not isinstance(was, bool)
        text = f"{hint}: {_shown(was)} → {_shown(now)}"
        yield f"/annotations/{hint}", text, Hit("change.hints", "note" if spoken else "risky")


def schema_widened(old: object, new: object) -> Iterator[Change]:
    """Each place where the input schema of a tool accepts more than before, or may: a keyword that isn't
    understood here has changed, or a member occurs twice now, so that readers take different ones. Raises
    RecursionError for values that are nested too deep.
    """
    if (twice := _repeated(new)) is not None and old != new:
        yield "", f"{twice} occurs twice", Hit("change.widened", "risky")
    stack = [("/inputSchema", member(old, "inputSchema"), member(new, "inputSchema"), 0)]
    work = limits.SCHEMA_WORK
    while stack:
        path, before, after, depth = stack.pop()
        work -= 1
        if work < 0 or depth > limits.SCHEMA_DEPTH:
            if work < 0 or _text(before) != _text(after):
                yield path, "too much to compare", Hit("change.widened", "risky")
            if work < 0:
                return
            continue
        if not isinstance(before, JsonMembers):
            if isinstance(before, list) and _text(before) != _text(after):
                yield path, _shown(after), Hit("change.widened", "risky")
            if before is False and after is not False and not path.endswith("/additionalProperties"):
                yield path, "any value", Hit("change.widened", "risky")
            continue
        if not isinstance(after, JsonMembers):
            if before and after is not False:
                yield path, "any value", Hit("change.widened", "risky")
            continue
        yield from _keywords(path, before, after)
        closed = member(before, "additionalProperties") is False
        for group in _GROUPS:
            was, now = member(before, group), member(after, group)
            if not isinstance(now, JsonMembers):
                continue
            known = dict(was) if isinstance(was, JsonMembers) else {}
            work -= len(now)
            for key, schema in now:
                if key in known:
                    stack.append((f"{path}/{group}/{key}", known[key], schema, depth + 1))
                elif group == "properties":
                    yield f"{path}/{group}/{key}", key, _new_parameter(key, schema)
                elif group == "patternProperties" and closed:
                    yield f"{path}/{group}/{key}", key, Hit("change.widened", "risky")
        stack += [(f"{path}/{key}", member(before, key), member(after, key), depth + 1) for key in _NESTED]


def _new_parameter(key: str, schema: object) -> Hit:
    kind = member(schema, "type")
    text = kind in (None, "string", "object", "array") and member(schema, "enum") is None
    free = text and FREE.search(words_of_name(key[:200]).lower()) is not None
    return Hit("change.sink" if free else "change.widened", "risky", 0, len(key))


def _keywords(path: str, old: JsonMembers, new: JsonMembers) -> Iterator[Change]:
    before, after = dict(old), dict(new)
    for key in _TESTS:
        if key in before and _text(before[key]) != _text(after.get(key)):
            yield f"{path}/{key}", _shown(after.get(key)), Hit("change.widened", "risky")
    if "enum" in before and _gained(before["enum"], after.get("enum")):
        yield f"{path}/enum", _shown(after.get("enum")), Hit("change.widened", "risky")
    if _types(before.get("type")) and not _types(after.get("type")) <= _types(before.get("type")):
        yield f"{path}/type", _shown(after.get("type")), Hit("change.widened", "risky")
    elif "type" in before and "type" not in after:
        yield f"{path}/type", "any type", Hit("change.widened", "risky")
    for keys, sign in ((_UPPER, 1), (_LOWER, -1)):
        for key in keys:
            was, now = before.get(key), after.get(key)
            if key in before and (not _less(now, was, sign)):
                yield f"{path}/{key}", _shown(now), Hit("change.widened", "risky")
    if before.get("additionalProperties") is False and after.get("additionalProperties") is not False:
        yield f"{path}/additionalProperties", "more properties", Hit("change.widened", "risky")
    for key in before:
        if key in _KNOWN or key in _ANNOTATIONS or (key in _NO_TEST and before[key] is _NO_TEST[key]):
            continue
        if _text(before[key]) != _text(after.get(key)):
            yield f"{path}/{key}", _shown(after.get(key)), Hit("change.widened", "risky")
    gone = _set(before.get("required")) - _set(after.get("required"))
    for key in sorted(gone):
        yield f"{path}/required", key, Hit("change.widened", "note")
    if "$ref" in after and "$ref" not in before:
        yield f"{path}/$ref", _shown(after["$ref"]), Hit("change.widened", "risky")
    conditions, left = before.get("allOf"), after.get("allOf")
    if isinstance(conditions, list) and _gained(left, conditions):
        yield f"{path}/allOf", _shown(left), Hit("change.widened", "risky")
    for key in _CHOICES:
        if key in before and _gained(before[key], after.get(key)):
            yield f"{path}/{key}", _shown(after.get(key)), Hit("change.widened", "risky")


def _gained(before: object, after: object) -> bool:
    if not isinstance(after, list) or not isinstance(before, list):
        return after != before
    known = {_text(value) for value in before}
    return any(_text(value) not in known for value in after)


def _less(now: object, was: object, sign: int) -> bool:
    """Whether the bound ``now`` is at least as strict as ``was``."""
    if now is None or isinstance(now, bool) or not isinstance(now, int | float):
        return False
    return not isinstance(was, int | float) or sign * now <= sign * was


def _types(value: object) -> frozenset[str]:
    named = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    kinds = frozenset(kind for kind in named if isinstance(kind, str))
    return kinds | {"integer"} if "number" in kinds else kinds


def _set(value: object) -> frozenset[str]:
    return frozenset(key for key in value if isinstance(key, str)) if isinstance(value, list) else frozenset()


def _repeated(value: object) -> str | None:
    """The name of a member that occurs twice in its object, anywhere in ``value``; None if none does."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, JsonMembers):
            names = Counter(name for name, _ in one)
            if len(names) < len(one):
                return names.most_common(1)[0][0]
            stack += [each for _, each in one]
        elif isinstance(one, list):
            stack += one
    return None


def _shown(value: object) -> str:
    """``value`` for a person."""
    return _text(value)[:_SHOWN]


def _text(value: object) -> str:
    """``value`` as JSON, the same for the same value."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True)


def _plain(value: object) -> object:
    if isinstance(value, JsonMembers):
        return {key: _plain(one) for key, one in value}
    return [_plain(one) for one in value] if isinstance(value, list) else value
