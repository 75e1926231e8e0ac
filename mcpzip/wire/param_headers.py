"""The HTTP headers that repeat parts of a modern request's body (spec 2026-07-28:
basic/transports/streamable-http, "Request Metadata Headers" and "Custom Headers from Tool Parameters").

Both the client and the server side use this module. In a tool's input schema, the keyword ``x-mcp-header`` of
a property requires that its argument is repeated in the header ``Mcp-Param-…``. The property must be a
string, an integer or a boolean, and be reached from the root through ``properties`` alone.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

ANNOTATION = "x-mcp-header"
"""The keyword of a schema that requires a header."""
PREFIX = "Mcp-Param-"
"""The prefix of these headers' names."""
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The member of the params that ``Mcp-Name`` repeats, by method."""

_BASE64_START, _BASE64_END = "=?base64?", "?="
_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_PLAIN = re.compile(r"[ -~]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A field name (RFC 9110, 5.6.2)."""
_INTEGER = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")
_TYPES = ("string", "integer", "boolean")

# The keywords whose value is a schema, a list of schemas, and an object of schemas (JSON Schema 2020-12, core
# 10 and 8.2.4), without `properties`.
_SCHEMA = frozenset(
    (
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
    )
)
_SCHEMA_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMA_OBJECT = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))


class _Annotated(NamedTuple):
    """A schema with the keyword. path: property names from the root; None if other keywords lead to it."""

    path: tuple[str, ...] | None
    schema: Mapping[str, object]

    @property
    def header(self) -> object:
        return self.schema[ANNOTATION]


def header_value(text: str) -> str:
    """``text`` as a header value: unchanged, or in Base64 if a header can't carry it unchanged."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _BASE64.fullmatch(text):
        return text
    return _BASE64_START + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode() + _BASE64_END


def header_text(value: str | None) -> str | None:
    """The text of the header ``value``; None if it is missing or invalid Base64."""
    match = None if value is None else _BASE64.fullmatch(value)
    if match is None:
        return value
    encoded = match[1].encode("latin-1", "replace")
    try:
        text = binascii.a2b_base64(encoded, strict_mode=True)
        # Only the canonical encoding is valid: the unused bits of the last character are zero.
        canonical = binascii.b2a_base64(text, newline=False) == encoded
        return text.decode("utf-8", "surrogatepass") if canonical else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def invalid_annotation(schema: object) -> str | None:
    """Why an ``x-mcp-header`` in ``schema`` is invalid, so that clients drop the tool; None if all are
    valid.
    """
    seen: set[str] = set()
    for annotated in _annotated(schema):
        header, kind = annotated.header, annotated.schema.get("type")
        if not annotated.path:
            return f"{ANNOTATION} is on a schema without a fixed path of properties"
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{ANNOTATION} is not a header name"
        if kind not in _TYPES:
            return f"{ANNOTATION} {header!r} is not on a string, an integer or a boolean"
        if header.lower() in seen:
            return f"{ANNOTATION} {header!r} is used twice"
        seen.add(header.lower())
    return None


def param_headers(schema: object, arguments: object) -> dict[str, str]:
    """The headers for those ``arguments`` that ``schema`` requires to be repeated."""
    return {
        PREFIX + header: header_value(text)
        for path, header, _ in _required_headers(schema)
        if (text := _text(_argument_at(arguments, path))) is not None
    }


def param_mismatch(schema: object, arguments: object, headers: Mapping[str, str]) -> str | None:
    """How ``headers`` differ from what ``schema`` requires for ``arguments``, as a sentence; None if they
    don't.

    headers: by lower-case name.
    """
    if invalid_annotation(schema) is not None:
        return None  # a client that follows the specification has dropped the tool
    for path, header, kind in _required_headers(schema):
        name, value = PREFIX + header, _argument_at(arguments, path)
        given, text = headers.get(name.lower()), _text(value)
        if given is None and text is not None:
            return f"{name} is missing, but the argument {'.'.join(path)!r} is given."
        if given is not None and text is None:
            return f"{name} is given, but the argument {'.'.join(path)!r} is missing."
        if given is not None and not _matches(kind, value, text, header_text(given)):
            return f"{name} differs from the argument {'.'.join(path)!r}."
    return None


def _required_headers(schema: object) -> Iterator[tuple[tuple[str, ...], str, object]]:
    """The path, the header and the type of each property that requires a header."""
    for annotated in _annotated(schema):
        if annotated.path and isinstance(annotated.header, str):
            yield annotated.path, annotated.header, annotated.schema.get("type")


def _annotated(root: object) -> Iterator[_Annotated]:
    """The schemas in ``root`` with the keyword, itself included. Does not follow references, and does not
    search data (`enum`, `const`, `default`, `examples`).
    """
    pending: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while pending:
        path, schema = pending.pop()
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            yield _Annotated(path, schema)
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, dict):
                pending += [(None if path is None else (*path, name), inner) for name, inner in value.items()]
            elif keyword in _SCHEMA:
                pending.append((None, value))
            elif keyword in _SCHEMA_LIST and isinstance(value, list):
                pending += [(None, inner) for inner in value]
            elif keyword in _SCHEMA_OBJECT and isinstance(value, dict):
                pending += [(None, inner) for inner in value.values()]


def _argument_at(arguments: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _text(value: object) -> str | None:
    """An argument as text; None if it is missing, null, or not a scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return None


def _matches(kind: object, value: object, text: str | None, header: str | None) -> bool:
    """Whether the decoded ``header`` repeats ``value``, whose text is ``text``. For an integer, 42.0 repeats
    42.
    """
    if header is None or header == text:
        return header is not None
    if kind != "integer" or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    number = _INTEGER.fullmatch(header)
    integral = isinstance(value, int) or value.is_integer()
    return number is not None and integral and int(number[1]) == int(value)
