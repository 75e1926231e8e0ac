"""The searchable fields of a tool.

The rule: this module extracts the texts, `analysis` weights them. A schema may be malformed: values of an
unexpected type are skipped, and of a large or deep schema only the first part is read.
"""

import re
from typing import cast

import msgspec

from mcpzip.model.entry import Entry, JsonObject
from mcpzip.search.lexicon import gloss_text

# First words of a text that are indexed, because the words after them are less relevant. What another value
# costs in nDCG@10:
DESCRIPTION_WORDS = 100  # 20: −.010, 60: −.004, 200 or all: −.003
PARAMETER_WORDS = 20  # of a parameter's description. 0: −.005, 6: −.002, 40: the same

_WORD_LENGTH = 12  # characters per word, to cut a text without spaces
_MAX_DEPTH = 4  # levels of nested objects; queries seldom name deeper keys
_MAX_PARAMETERS = 200  # of one tool; generated schemas have thousands
_MAX_SCHEMAS = 1_000  # nested in one schema
_MAX_VALUES = 40  # of one enum
_MAX_NAME = 200  # characters
_MAX_VALUE = 64  # characters
_MAX_TEXT = 20_000  # characters of a field
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_WITH_TEXTS = ("enum", "properties", *_ALTERNATIVES)  # the members of a schema that have texts
_SENTENCE = re.compile(r".{15,}?[.!?](?=\s|$)", re.DOTALL)


class Fields(msgspec.Struct, frozen=True):
    """The searchable texts of one tool. A text in another script than Latin is followed by its English words
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
        """The fields of ``entry``. Decodes its schema."""
        schema = _SchemaTexts()
        schema.read(entry.input_schema(), 0)
        return cls(
            name=_with_english(entry.tool[:_MAX_TEXT]),
            server=entry.server,
            title=_with_english(entry.title[:_MAX_TEXT]),
            description=_with_english(_first_words(entry.description, DESCRIPTION_WORDS)),
            parameters=_with_english(" ".join(schema.parameters)[:_MAX_TEXT]),
            values=" ".join(schema.values)[:_MAX_TEXT],
            parameter_descriptions=_with_english(" ".join(schema.descriptions)[:_MAX_TEXT]),
        )

    @classmethod
    def name_only(cls, entry: Entry) -> "Fields":
        """The names of ``entry`` and its server; the other fields are empty."""
        return cls(entry.tool, entry.server, "", "", "", "", "")


class _SchemaTexts:
    """The texts of a JSON Schema: the names and descriptions of its parameters, and its enum values."""

    __slots__ = ("_left", "descriptions", "parameters", "values")

    def __init__(self) -> None:
        self._left = _MAX_SCHEMAS
        self.parameters: list[str] = []
        self.values: list[str] = []
        self.descriptions: list[str] = []

    def read(self, schema: JsonObject, depth: int) -> None:
        """Collect the texts of ``schema`` and of its subschemas. depth: its level, 0 for the tool's own."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0 or schema.keys().isdisjoint(_WITH_TEXTS):
            return
        values = schema.get("enum")
        if isinstance(values, list):
            self.values += [value[:_MAX_VALUE] for value in values[:_MAX_VALUES] if isinstance(value, str)]
        properties = schema.get("properties")
        if isinstance(properties, dict):
            for name, parameter in properties.items():
                if len(self.parameters) >= _MAX_PARAMETERS:
                    return
                self.parameters.append(name[:_MAX_NAME])
                if isinstance(parameter, dict):
                    self._read_parameter(parameter, depth)
        for keyword in _ALTERNATIVES:
            if keyword not in schema:
                continue
            for alternative in _objects(schema.get(keyword)):
                self.read(alternative, depth + 1)

    def _read_parameter(self, parameter: JsonObject, depth: int) -> None:
        description = parameter.get("description")
        if isinstance(description, str):
            self.descriptions.append(_first_words(description, PARAMETER_WORDS))
        self.read(parameter, depth + 1)
        items = parameter.get("items")
        if isinstance(items, dict):
            self.read(cast(JsonObject, items), depth + 1)


def _with_english(text: str) -> str:
    """``text``, followed by the English words for its parts in other scripts than Latin."""
    return text if text.isascii() else f"{text} {gloss_text(text)}".rstrip()


def _objects(value: object) -> list[JsonObject]:
    """The objects in ``value``, if it is a list."""
    items = value if isinstance(value, list) else []
    return [cast(JsonObject, item) for item in items if isinstance(item, dict)]


def _first_words(text: str, count: int) -> str:
    """The first ``count`` words of ``text``; in a script without spaces, about as many."""
    words = text[:_MAX_TEXT].split(None, count)[:count]
    return " ".join(words)[: count * _WORD_LENGTH]


def first_sentence(text: str) -> str:
    """``text`` up to the first end of a sentence after 15 characters; all of it, if there is none."""
    found = _SENTENCE.match(text)
    return found[0] if found else text
