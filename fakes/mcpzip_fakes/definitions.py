"""What a server offers: tools, resources, prompts; and generated tools.

The rule: a definition is stored as JSON text and sent unchanged. It can be any JSON, so that invalid lists
can be tested.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct

from mcpzip_fakes.answer import PLACE, Answer, Asks, JsonObject, check_json, fill

ANY_OBJECT: JsonObject = {"type": "object"}
"""The schema of a tool without one."""


class Tool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool: ``raw``, its definition as JSON text, and ``result``, its answer (default: echo).

    late: it appears with the first change of the list, and disappears with the next; the same for resources
    and prompts.
    """

    raw: str
    result: Answer = Answer(echo=True)
    late: bool = False

    def __post_init__(self) -> None:
        _check(self.raw)

    @property
    def name(self) -> str:
        """Its name; "" when the definition has none."""
        return _text(self.definition(), "name")

    def definition(self) -> JsonObject:
        """The definition, decoded; ``{}`` when it isn't an object."""
        return _object(self.raw)

    @classmethod
    def make(cls, name: str, result: Answer | None = None, **fields: object) -> "Tool":
        """A tool from its fields (``description=``, ``inputSchema=``, …); without a schema it takes any
        object."""
        definition = {"name": name, **fields}
        definition.setdefault("inputSchema", ANY_OBJECT)
        return cls(raw=json_text(definition), result=Answer(echo=True) if result is None else result)


class Resource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A resource or (with ``uriTemplate``) a template: ``raw`` as for a tool, and its contents.

    text, or blob (base64), or size (so many characters); or whole, the result itself: a JSON value, or its
    text. ``{uri}`` in text becomes the requested URI, and a variable of the template its value. complete:
    completions by the name of a variable. ask, state: as for a tool; the client's answers replace
    placeholders in text.
    """

    raw: str
    text: str | None = None
    blob: str | None = None
    size: int | None = None
    whole: object = UNSET
    complete: dict[str, tuple[str, ...]] = {}
    ask: Asks = None
    state: bool = True
    late: bool = False

    def __post_init__(self) -> None:
        _check(self.raw)
        check_json("whole", self.whole)

    def definition(self) -> JsonObject:
        """The definition, decoded; ``{}`` when it isn't an object."""
        return _object(self.raw)

    def places(self, uri: str) -> JsonObject | None:
        """The values of its template's variables in ``uri`` (RFC 6570, level 1 only: ``{name}`` is one path
        segment); None if ``uri`` is not its URI."""
        definition = self.definition()
        if definition.get("uri") == uri:
            return {}
        template = definition.get("uriTemplate")
        if not isinstance(template, str):
            return None
        names = re.findall(r"\{([^{}]+)\}", template)
        parts = [re.escape(part) for part in re.split(r"\{[^{}]+\}", template)]
        found = re.fullmatch("([^/]+)".join(parts), uri)
        return dict(zip(names, found.groups(), strict=True)) if found else None

    def contents(self, uri: str, values: Mapping[str, object]) -> JsonObject:
        """Its contents at ``uri``; ``values``: for the placeholders of its text."""
        definition = self.definition()
        held: JsonObject = {"uri": uri}
        if "mimeType" in definition:
            held["mimeType"] = definition["mimeType"]
        if self.blob is not None:
            held["blob"] = self.blob
        elif self.size is not None:
            held["text"] = "x" * self.size
        else:
            held["text"] = _replaced(self.text or "", {**values, "uri": uri})
        return held


class Prompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A prompt: ``raw`` as for a tool, its messages (filled as answers are) or whole, the result itself (a
    JSON value, or its text), and completions by argument name. ask, state: as for a tool; the client's
    answers go into the messages."""

    raw: str
    messages: object = ()
    whole: object = UNSET
    complete: dict[str, tuple[str, ...]] = {}
    ask: Asks = None
    state: bool = True
    late: bool = False

    def __post_init__(self) -> None:
        _check(self.raw)
        check_json("whole", self.whole)

    @property
    def name(self) -> str:
        """Its name; "" when the definition has none."""
        return _text(_object(self.raw), "name")


class Generate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Generated tools, the same on every run: ``count`` of them, with descriptions of at least
    ``description`` characters and ``parameters`` parameters each. They echo."""

    count: int
    description: int = 80
    parameters: int = 3


def json_text(value: object) -> str:
    """``value`` as JSON text."""
    return msgspec.json.encode(value).decode()


def _replaced(text: str, values: Mapping[str, object]) -> str:
    """``text`` with values for its placeholders; other braces, as of JSON, stay."""
    for place in sorted(set(PLACE.findall(text))):
        name, *path = place.split(".")
        if name in values:
            found = str(fill(f"{{{place}}}", values) if path else values[name])
            text = text.replace(f"{{{place}}}", found)
    return text


def _object(raw: str) -> JsonObject:
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


def _text(mapping: JsonObject, key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _check(raw: str) -> None:
    try:
        msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ValueError(f"raw is not JSON text ({error}); correct it") from None
