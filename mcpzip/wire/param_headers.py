"""The headers in which a modern request over HTTP repeats a part of its body (spec 2026-07-28:
basic/transports/streamable-http, "Request Metadata Headers" and "Custom Headers from Tool Parameters").

The rule: whoever sends a request and whoever checks it read the schema in the same way, here. A property of
a tool's input schema asks with ``x-mcp-header`` that its argument is repeated in ``Mcp-Param-…``. It may if
it is a string, an integer or a boolean and is reached from the root through ``properties`` alone.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

ANNOTATION = "x-mcp-header"
"""The keyword of a schema that asks for a header."""
PREFIX = "Mcp-Param-"
"""What the names of these headers begin with."""
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The param that ``Mcp-Name`` repeats, by method."""

_ENCODED, _END = "=?base64?", "?="
_CODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_PLAIN = re.compile(r"[ -~]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A field name (RFC 9110, 5.6.2)."""
_DECIMAL = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")
_TYPES = ("string", "integer", "boolean")

# Where a schema holds other schemas (JSON Schema 2020-12, core 10 and 8.2.4), but for `properties`.
_ONE = frozenset(
    {
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    }
)
_MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))


class _Annotated(NamedTuple):
    """A schema that asks for a header. path: of property names from the root; None if it isn't reached so."""

    path: tuple[str, ...] | None
    schema: Mapping[str, object]

    @property
    def header(self) -> object:
        return self.schema[ANNOTATION]


def header_value(text: str) -> str:
    """``text`` as a header holds it: as it is, or as Base64 where it would not come out the same."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _CODED.fullmatch(text):
        return text
    return _ENCODED + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode() + _END


def header_text(value: str | None) -> str | None:
    """The text that the header ``value`` stands for; None when it is there in no form that the specification
    has, or not at all.
    """
    found = None if value is None else _CODED.fullmatch(value)
    if found is None:
        return value
    coded = found[1].encode("latin-1", "replace")
    try:
        text = binascii.a2b_base64(coded, strict_mode=True)
        # One text has one form: what is left over in the last letter is zero.
        same = binascii.b2a_base64(text, newline=False) == coded
        return text.decode("utf-8", "surrogatepass") if same else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def invalid_annotation(schema: object) -> str | None:
    """Why the headers that ``schema`` asks for can't be, which a client leaves out; None when they can."""
    seen: set[str] = set()
    for annotated in _annotated(schema):
        header, kind = annotated.header, annotated.schema.get("type")
        if not annotated.path:
            return f"{ANNOTATION} stands where no argument has a fixed place"
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{ANNOTATION} is no name of a header"
        if kind not in _TYPES:
            return f"{ANNOTATION} {header!r} is not on a string, an integer or a boolean"
        if header.lower() in seen:
            return f"{ANNOTATION} {header!r} is there twice"
        seen.add(header.lower())
    return None


def param_headers(schema: object, arguments: object) -> dict[str, str]:
    """The headers that repeat those of ``arguments`` which ``schema`` wants repeated."""
    return {
        PREFIX + header: header_value(text)
        for path, header, _ in _asked_for(schema)
        if (text := _spelt(_at(arguments, path))) is not None
    }


def param_mismatch(schema: object, arguments: object, headers: Mapping[str, str]) -> str | None:
    """Why ``headers`` don't repeat ``arguments`` as ``schema`` has it, as a sentence; None when they do.

    headers: by their names in small letters.
    """
    if invalid_annotation(schema) is not None:
        return None  # a client that goes by the specification doesn't have the tool
    for path, header, kind in _asked_for(schema):
        name, value = PREFIX + header, _at(arguments, path)
        given, text = headers.get(name.lower()), _spelt(value)
        if given is None and text is not None:
            return f"{name} is missing, and the argument {'.'.join(path)!r} is there."
        if given is not None and text is None:
            return f"{name} is there, and the argument {'.'.join(path)!r} is not."
        if given is not None and not _same(kind, value, text, header_text(given)):
            return f"{name} is not the argument {'.'.join(path)!r}."
    return None


def _asked_for(schema: object) -> Iterator[tuple[tuple[str, ...], str, object]]:
    """The path of each property that asks for a header, that header, and the property's type."""
    for annotated in _annotated(schema):
        if annotated.path and isinstance(annotated.header, str):
            yield annotated.path, annotated.header, annotated.schema.get("type")


def _annotated(root: object) -> Iterator[_Annotated]:
    """The schemas within ``root`` that ask for a header, itself included. References aren't followed, and
    data (`enum`, `const`, `default`, `examples`) is not looked into.
    """
    left: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while left:
        path, schema = left.pop()
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            yield _Annotated(path, schema)
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, dict):
                left += [(None if path is None else (*path, name), inner) for name, inner in value.items()]
            elif keyword in _ONE:
                left.append((None, value))
            elif keyword in _MANY and isinstance(value, list):
                left += [(None, inner) for inner in value]
            elif keyword in _NAMED and isinstance(value, dict):
                left += [(None, inner) for inner in value.values()]


def _at(arguments: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _spelt(value: object) -> str | None:
    """An argument as text; None for one that is absent, null, or no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return None


def _same(kind: object, value: object, text: str | None, said: str | None) -> bool:
    """Whether a header that says ``said`` repeats ``value``, spelt ``text``. 42 and 42.0 are one integer."""
    if said is None or said == text:
        return said is not None
    if kind != "integer" or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    whole = _DECIMAL.fullmatch(said)
    integral = isinstance(value, int) or value.is_integer()
    return whole is not None and integral and int(whole[1]) == int(value)
