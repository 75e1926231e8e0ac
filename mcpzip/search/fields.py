"""What of a tool is searched: its text by field.

The rule: this file says where a word may stand, `index` says what it weighs there. Schemas are read as they
come: what is not of the expected type is passed over, and a schema larger or deeper than a person writes is
read so far and no further.
"""

from dataclasses import dataclass
from typing import cast

from mcpzip.model.entry import Entry, JsonObject
from mcpzip.search.lexicon import gloss_text

# Words of a text that are indexed; what comes after is manual, not summary. What another value costs in
# nDCG@10:
DESCRIPTION_WORDS = 100  # 20: −.010, 60: −.004, 200 or all: −.003
PARAMETER_WORDS = 20  # 0: −.005, 6: −.002, 40: the same

_LONGEST_WORD = 12  # characters a word on average may have, for text that has no spaces
_DEEPEST = 4  # levels of nested objects whose keys a request might still name
_MOST_PARAMETERS = 200  # of one tool; generated schemas have thousands
_MOST_SCHEMAS = 1_000  # in one another
_MOST_VALUES = 40  # of one enum
_LONGEST_NAME = 200  # characters
_LONGEST_VALUE = 64  # characters
_LONGEST_TEXT = 20_000  # characters of any text that are looked at
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True)
class Fields:
    """The searchable texts of one tool. What a text says in another script than Latin follows it in English
    (`lexicon`).
    """

    name: str
    server: str
    title: str
    description: str
    parameters: str
    values: str
    parameter_descriptions: str

    @classmethod
    def of(cls, entry: Entry) -> "Fields":
        """The fields of ``entry``; its schema is decoded anew."""
        schema = _Schema()
        schema.read(entry.input_schema(), 0)
        return cls(
            name=_understood(entry.tool[:_LONGEST_TEXT]),
            server=entry.server,
            title=_understood(entry.title[:_LONGEST_TEXT]),
            description=_understood(_first_words(entry.description, DESCRIPTION_WORDS)),
            parameters=_understood(" ".join(schema.parameters)[:_LONGEST_TEXT]),
            values=" ".join(schema.values)[:_LONGEST_TEXT],
            parameter_descriptions=_understood(" ".join(schema.descriptions)[:_LONGEST_TEXT]),
        )

    @classmethod
    def named(cls, entry: Entry) -> "Fields":
        """The fields of ``entry`` when nothing is read of it but its name."""
        return cls(entry.tool, entry.server, "", "", "", "", "")


class _Schema:
    """The words of a JSON Schema: its parameters' names, descriptions and enum values."""

    __slots__ = ("_left", "descriptions", "parameters", "values")

    def __init__(self) -> None:
        self._left = _MOST_SCHEMAS
        self.parameters: list[str] = []
        self.values: list[str] = []
        self.descriptions: list[str] = []

    def read(self, schema: JsonObject, depth: int) -> None:
        """Collect from ``schema`` and what is nested in it, ``depth`` levels below the tool's own."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return
        values = schema.get("enum")
        if isinstance(values, list):
            named = [value for value in values[:_MOST_VALUES] if isinstance(value, str)]
            self.values += [value[:_LONGEST_VALUE] for value in named]
        properties = schema.get("properties")
        if isinstance(properties, dict):
            for name, parameter in properties.items():
                if len(self.parameters) >= _MOST_PARAMETERS:
                    return
                self.parameters.append(name[:_LONGEST_NAME])
                if isinstance(parameter, dict):
                    self._read_parameter(parameter, depth)
        for keyword in _ALTERNATIVES:
            for alternative in _objects(schema.get(keyword)):
                self.read(alternative, depth + 1)

    def _read_parameter(self, parameter: JsonObject, depth: int) -> None:
        description = parameter.get("description")
        if isinstance(description, str):
            self.descriptions.append(_first_words(description, PARAMETER_WORDS))
        self.read(parameter, depth + 1)
        for item in _objects([parameter.get("items")]):
            self.read(item, depth + 1)


def _understood(text: str) -> str:
    """``text``, and in English what of it is in another script."""
    return text if text.isascii() else f"{text} {gloss_text(text)}".rstrip()


def _objects(value: object) -> list[JsonObject]:
    """The objects in ``value``, if it is a list."""
    return (
        [cast(JsonObject, item) for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def _first_words(text: str, count: int) -> str:
    """The first ``count`` words of ``text``; of a script without spaces, about as many."""
    words = text[:_LONGEST_TEXT].split(None, count)[:count]
    return " ".join(words)[: count * _LONGEST_WORD]
