"""A tool's input schema as a form, and a filled-in form as the tool's arguments (pure).

The rule: nothing is invented. A field that was left empty is not sent, unless it is a text that the tool
requires; what a form can't express is written as JSON. Names of fields and what can be chosen are written so
that they come back as they were, though a page shows no character that hides or reorders.
"""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote as quote_part

import msgspec

from mcpzip.model import sanitize
from mcpzip.model.entry import JsonObject
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.signature import parameters
from mcpzip.ui.rendering import ShownText
from mcpzip.wire import NotAnObject, is_json, join_object, quote, split_object

PREFIX = "argument."
"""Of the name of a field, so that a parameter can't stand for a field of ours."""
WHOLE = "json"
"""The field for all arguments as one JSON object."""
_MOST = 40
"""Parameters with a field of their own; the tool's arguments are written as JSON where there are more."""
_CHOICES = 100
_ABOUT = 400
"""Characters of a description."""
_SIZE = 50_000
"""Characters of all names, descriptions and choices; the arguments are JSON where there are more."""

Kind = Literal["text", "long", "number", "choice", "json"]
_NUMBERS = ("integer", "number")
_LONG = 120
"""A text whose schema allows more characters, or that says nothing of it, may have lines."""


class Field(msgspec.Struct, frozen=True):
    """A parameter. kind: how it is filled in. choices: what may be chosen, as JSON texts without a
    character that hides or reorders. type: for people. value: what was filled in, as it was, because a person
    sends it again.
    """

    name: str
    kind: Kind
    required: bool
    about: str
    type: str
    choices: tuple[ShownText, ...] = ()
    value: ShownText = ShownText()

    @property
    def field(self) -> ShownText:
        """The name of the field in the form."""
        return _field_name(self.name)

    @property
    def size(self) -> int:
        """Characters that a server can make long."""
        return len(self.name) + len(self.about) + sum(map(len, self.choices))


def fields_for(schema: JsonObject, given: Mapping[str, str]) -> list[Field]:
    """The fields for a tool with this schema; none where there are too many. given: a filled-in form."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    if len(known) > _MOST:
        return []
    fields: list[Field] = []
    left = _SIZE
    for name, one in known.items():
        fields.append(_field(name, one, name in needed, given.get(_field_name(name), "")))
        left -= fields[-1].size
        if left < 0:
            return []
    return fields


def arguments_of(fields: list[Field], given: Mapping[str, str]) -> bytes:
    """The arguments that a filled-in form stands for, as JSON text. Raises InvalidArgumentsError."""
    whole = given.get(WHOLE, "").strip()
    if whole:
        return _object(whole)
    found: dict[str, bytes] = {}
    for field in fields:
        text = given.get(field.field, "")
        if field.kind in ("text", "long"):
            if text or field.required:
                found[field.name] = quote(text.replace("\r\n", "\n"))
        elif text.strip():
            raw = text.strip().encode("utf-8", "replace")
            if not _is_json(raw):
                raise InvalidArgumentsError(f"{field.name}: {text!r} is not {field.type}, as JSON writes it.")
            found[field.name] = raw
    return join_object(found)


def _field_name(name: str) -> ShownText:
    """With escapes of URLs, because a browser keeps those and a page shows no control character as it is."""
    return ShownText(PREFIX + quote_part(name, safe="", errors="replace"))


def _object(text: str) -> bytes:
    try:
        return join_object(split_object(text.encode("utf-8", "replace")))
    except (NotAnObject, RecursionError) as error:
        raise InvalidArgumentsError(f"The arguments are not a JSON object: {error}.") from error


def _is_json(raw: bytes) -> bool:
    try:
        return is_json(raw)
    except (UnicodeDecodeError, RecursionError):
        return False


def _field(name: str, schema: object, required: bool, value: str) -> Field:
    about = schema.get("description") if isinstance(schema, dict) else None
    kind, choices = _kind(schema)
    return Field(
        name,
        kind,
        required,
        about[:_ABOUT] if isinstance(about, str) else "",
        parameters({"type": "object", "properties": {"_": schema}}, _LONG).strip("[]").removeprefix("_:"),
        choices,
        ShownText(value),
    )


def _kind(schema: object) -> tuple[Kind, tuple[ShownText, ...]]:
    if not isinstance(schema, dict):
        return "json", ()
    listed = schema.get("enum")
    if isinstance(listed, list) and 0 < len(listed) <= _CHOICES:
        texts = (msgspec.json.encode(one).decode() for one in listed)
        return "choice", tuple(ShownText(sanitize.json_text(text)) for text in texts)
    match schema.get("type"):
        case "boolean":
            return "choice", (ShownText("true"), ShownText("false"))
        case "string":
            most = schema.get("maxLength")
            short = schema.get("format") is not None or (isinstance(most, int) and most <= _LONG)
            return ("text" if short else "long"), ()
        case "integer" | "number":
            return "number", ()
    return "json", ()
