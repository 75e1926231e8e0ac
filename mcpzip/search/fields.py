"""What of a tool is searched: its text by field.

The rule: this file says where a word may stand, `index` says what it weighs there. Schemas are read as they come: whatever is not
of the expected type is passed over, and a schema deeper or larger than any person would write is read only so far.
"""

from dataclasses import dataclass

from mcpzip.model.entry import Entry, JsonObject

# Words of a description that are indexed. A description that goes on is manual, not summary: see docs/search.md.
DESCRIPTION_WORDS = 100
PARAMETER_WORDS = 20

_DEEPEST = 4  # levels of nested objects whose parameters are still names a request might use
_MOST_PARAMETERS = 200  # of one tool; generated schemas have thousands
_MOST_VALUES = 40  # of one enum
_LONGEST_TEXT = 20_000  # characters of one text looked at


@dataclass(frozen=True, slots=True)
class Fields:
    """The searchable texts of one tool, in the order of `FIELD_NAMES`."""

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
        reader = _SchemaReader()
        reader.read(entry.input_schema(), 0)
        return cls(
            name=entry.tool[:_LONGEST_TEXT],
            server=entry.server,
            title=entry.title[:_LONGEST_TEXT],
            description=_first_words(entry.description, DESCRIPTION_WORDS),
            parameters=" ".join(reader.names),
            values=" ".join(reader.values),
            parameter_descriptions=" ".join(reader.descriptions),
        )


class _SchemaReader:
    """Collects parameter names, enum values and parameter descriptions of one schema."""

    __slots__ = ("descriptions", "names", "values")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[str] = []
        self.descriptions: list[str] = []

    def read(self, schema: JsonObject, depth: int) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or depth > _DEEPEST:
            return
        for name, value in properties.items():
            if len(self.names) >= _MOST_PARAMETERS:
                return
            self.names.append(name)
            if isinstance(value, dict):
                self._describe(value, depth)

    def _describe(self, parameter: JsonObject, depth: int) -> None:
        description = parameter.get("description")
        if isinstance(description, str):
            self.descriptions.append(_first_words(description, PARAMETER_WORDS))
        for schema in (parameter, parameter.get("items")):
            if isinstance(schema, dict):
                values = schema.get("enum")
                if isinstance(values, list):
                    self.values += [value[:64] for value in values[:_MOST_VALUES] if isinstance(value, str)]
                self.read(schema, depth + 1)


def _first_words(text: str, count: int) -> str:
    """The first ``count`` words of ``text``; of a script without spaces, as many characters as so many words take."""
    return " ".join(text[:_LONGEST_TEXT].split(None, count)[:count])[: count * 12]
