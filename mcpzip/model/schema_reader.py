"""Reads a JSON Schema: the members of an object, and their types (pure).

1. A schema is untrusted, so reading it takes at most `limits.SCHEMA_WORK` steps. A step is a schema, a
   property, an enum value, a reference, `POINTER_STEP` characters of a pointer, or an entry that is searched
   for an anchor. A part that would take more steps than are left is ``any`` and takes none, so that the parts
   after it can still be read.
2. The result for a schema at one depth is cached, because many references may point to it.
3. Schemas nested deeper than `limits.SCHEMA_DEPTH` are ``any``.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from mcpzip.model import type_names
from mcpzip.model.limits import SCHEMA_DEPTH, SCHEMA_WORK, URI
from mcpzip.model.type_names import ANY, Alternatives, literals, type_name, union

POINTER_STEP = 64
"""Characters of a pointer that count as one step."""


class ObjectMembers(msgspec.Struct, frozen=True):
    """The members of an object schema. others: whether it explicitly allows members that it doesn't name."""

    properties: Mapping[str, object]
    required: frozenset[str]
    others: bool


_PLAIN = frozenset(("string", "integer", "number", "boolean", "object"))
"""The types whose schema needs no reading."""
_NOTHING = ObjectMembers({}, frozenset(), False)


class SchemaReader:
    """Reads one schema. root: the schema in which references are resolved. work: the maximum of steps."""

    def __init__(self, root: object, work: int = SCHEMA_WORK) -> None:
        self._root = root
        self._left = self._work = work
        # By the id of a schema object, which ``root`` keeps alive, and its depth.
        self._members: dict[tuple[int, int], ObjectMembers] = {}
        self._types: dict[tuple[int, int], Alternatives] = {}
        self._targets: dict[str, object] = {}
        self._anchors: dict[str, object] | None = None

    @property
    def work(self) -> int:
        """Steps taken so far."""
        return self._work - self._left

    def type(self, schema: object) -> str:
        """The type that ``schema`` describes: ``string``, ``string[]``, ``open|closed``, ``any``."""
        if isinstance(schema, dict) and "enum" not in schema and "const" not in schema:
            declared = schema.get("type")  # most are plain, and need no more than this
            if isinstance(declared, str) and declared in _PLAIN and self._take_steps(1):
                return declared
        return type_names.shown(self._alternatives(schema, 0))

    def members(self, schema: object, depth: int = 0) -> ObjectMembers:
        """The members of an object schema, with those of references, ``allOf``, ``anyOf``, ``oneOf``."""
        if not self._take_steps(1) or not isinstance(schema, dict) or depth >= SCHEMA_DEPTH:
            return _NOTHING
        key = id(schema), depth
        if key not in self._members:
            self._members[key] = self._members_of(schema, depth)
        return self._members[key]

    def _members_of(self, schema: Mapping[str, object], depth: int) -> ObjectMembers:
        own = self._named(schema.get("properties"))
        required = {name for name in self._each(schema.get("required")) if isinstance(name, str)}
        # Draft 3, and many hand-written schemas, have `required: true` inside the property.
        required |= {name for name, value in own.items() if _mapping(value).get("required") is True}
        extra = schema.get("additionalProperties")
        others = extra is True or (isinstance(extra, dict) and bool(extra))
        properties: dict[str, object] = {}
        parts = [self.members(part, depth + 1) for part in self._all_of(schema)]
        choices = [self.members(part, depth + 1) for part in self._any_of(schema)]
        for part in parts:
            if self._take_steps(len(part.required)):
                required |= part.required
        if choices and self._take_steps(sum(len(choice.required) for choice in choices)):
            required |= frozenset.intersection(*(choice.required for choice in choices))
        for part in (*choices, *parts):
            if self._take_steps(len(part.properties)):
                properties.update(part.properties)
            others = others or part.others
        return ObjectMembers({**properties, **own}, frozenset(required), others)

    def _alternatives(self, schema: object, depth: int) -> Alternatives:
        if not self._take_steps(1) or not isinstance(schema, dict) or depth >= SCHEMA_DEPTH:
            return ANY
        key = id(schema), depth
        if key not in self._types:
            self._types[key] = self._type_of(schema, depth)
        return self._types[key]

    def _type_of(self, schema: Mapping[str, object], depth: int) -> Alternatives:
        if "const" in schema:
            return literals([schema["const"]])
        values = _list(schema.get("enum"))
        if values and self._take_steps(len(values)):
            return literals(values)
        declared = schema.get("type")
        if isinstance(declared, str):
            return self._named_type(declared, schema, depth)
        names = [name for name in self._each(declared) if isinstance(name, str)]
        if names:
            return union(self._named_type(name, schema, depth) for name in names)
        for part in self._all_of(schema):
            found = self._alternatives(part, depth + 1)
            if found != ANY:
                return found
        if values:
            return ANY
        choices = [self._alternatives(choice, depth + 1) for choice in self._any_of(schema)]
        if choices:
            return union(choices)
        if any(key in schema for key in ("properties", "additionalProperties", "patternProperties")):
            return {"object": ""}
        if "items" in schema or "prefixItems" in schema:
            return self._named_type("array", schema, depth)
        return ANY

    def _named_type(self, name: str, schema: Mapping[str, object], depth: int) -> Alternatives:
        if name == "null":
            return {}
        if name != "array":
            return type_name(name)
        items = schema.get("items")
        several = self._each(items) if isinstance(items, list) else iter([items])
        kinds = [each for each in self._each(schema.get("prefixItems")) if isinstance(each, dict)]
        kinds += [each for each in several if isinstance(each, dict)]
        inner = type_names.shown(union(self._alternatives(kind, depth + 1) for kind in kinds or [{}]))
        return {f"({inner})[]" if "|" in inner else f"{inner}[]": ""}

    # --- the limit on steps ---------------------------------------------------------------------------------

    def _take_steps(self, steps: int) -> bool:
        """Takes ``steps`` steps if so many are left. Returns whether it did."""
        if steps > self._left:
            return False
        self._left -= steps
        return True

    def _named(self, properties: object) -> Mapping[str, object]:
        """``properties``, as many as there are steps left."""
        own = _mapping(properties)
        if self._take_steps(len(own)):
            return own
        return {name: own[name] for name in islice(own, self._left) if self._take_steps(1)}

    def _each(self, values: object) -> Iterator[object]:
        """The elements of ``values`` if it is a list, as many as there are steps left."""
        for value in _list(values):
            if not self._take_steps(1):
                return
            yield value

    def _all_of(self, schema: Mapping[str, object]) -> Iterator[object]:
        """The schemas that apply in addition to the keywords of ``schema``."""
        referenced = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(referenced, str):
            yield self._target(referenced)
        yield from self._each(schema.get("allOf"))

    def _any_of(self, schema: Mapping[str, object]) -> Iterator[object]:
        yield from self._each(schema.get("anyOf"))
        yield from self._each(schema.get("oneOf"))

    # --- references -----------------------------------------------------------------------------------------

    def _target(self, reference: str) -> object:
        """The target of ``#/$defs/Issue`` (a JSON pointer, RFC 6901) or ``#issue``; None if there is none."""
        if len(reference) > URI or not self._take_steps(1 + len(reference) // POINTER_STEP):
            return None
        if reference not in self._targets:
            self._targets[reference] = self._resolve(reference)
        return self._targets[reference]

    def _resolve(self, reference: str) -> object:
        if reference == "#":
            return self._root
        if not reference.startswith("#/"):
            if self._anchors is None:
                self._anchors = self._all_anchors()
            return self._anchors.get(reference)
        target = self._root
        if "%" in reference:
            from urllib.parse import unquote  # rarely needed, and slow to import

            reference = unquote(reference)
        for token in reference[2:].split("/"):
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict):
                target = target.get(key)
            elif isinstance(target, list) and key.isdecimal() and len(key) < 9 and int(key) < len(target):
                target = target[int(key)]
            else:
                return None
        return target

    def _all_anchors(self) -> dict[str, object]:
        """The schemas in ``$defs`` by ``$id`` and ``$anchor``; of duplicates the first."""
        found: dict[str, object] = {}
        root = _mapping(self._root)
        for key in ("$defs", "definitions"):
            schemas = _mapping(root.get(key))
            if not self._take_steps(len(schemas)):
                continue
            for schema in map(_mapping, schemas.values()):
                own, anchor = schema.get("$id"), schema.get("$anchor")
                if isinstance(own, str):
                    found.setdefault(own, schema)
                if isinstance(anchor, str):
                    found.setdefault(f"#{anchor}", schema)
        return found


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
