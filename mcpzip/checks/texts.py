"""The strings of an item, and what they read like (pure).

1. Every string counts: names of members too, and both of two members with the same name, because a model is
   shown the JSON as it was sent.
2. A string is looked at as it is first, for what it hides. Phrases are searched in its folded form:
   compatible characters and look-alikes are replaced, invisible ones removed, letters are lower-case, white
   space is one space.
"""

import json
import re
import unicodedata

from msgspec import Struct

from mcpzip.checks.confusables import LOOKALIKES
from mcpzip.checks.finding import INVISIBLE
from mcpzip.model import limits

PIECE, OVERLAP = 16_384, 512
"""A long text is searched in pieces of so many characters, each with so many of the one before."""

_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_WORD = re.compile(r"\w+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[_\-./~\s]+")

KNOWN_KEYS = frozenset(
    [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "icons",
        "_meta",
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "default",
        "examples",
        "const",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "multipleOf",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$defs",
        "$schema",
        "$id",
        "$comment",
        "definitions",
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
        "src",
        "mimeType",
        "sizes",
        "uri",
        "uriTemplate",
        "size",
        "arguments",
        "version",
        "websiteUrl",
        "execution",
        "taskSupport",
        "priority",
        "audience",
    ]
)
"""Member names of MCP and JSON Schema."""


_KNOWN_VALUES = frozenset(
    (
        "string",
        "number",
        "integer",
        "boolean",
        "object",
        "array",
        "null",
        "date-time",
        "uri",
        "user",
        "assistant",
    )
)
"""Values of MCP and JSON Schema, in which there is nothing to find."""


class Text(Struct, frozen=True):
    """One string of an item. path: its JSON pointer. key: whether it is the name of a member."""

    path: str
    text: str
    key: bool = False

    @property
    def field(self) -> str:
        """The last step of its path that is no number."""
        steps = [step for step in self.path.split("/") if not step.isdigit()]
        return steps[-1] if steps else ""


class JsonMembers(list[tuple[str, object]]):
    """A JSON object as its members in order, also those whose name occurs twice."""


class TooMuchError(ValueError):
    """The body is no JSON, or nested too deep."""


def decoded(body: bytes) -> object:
    """The JSON value of ``body``, with `JsonMembers` for objects and all numbers as floats: 1 and 1.0 are the
    same, and no number is too long. Raises TooMuchError.
    """
    try:
        return json.loads(
            body.decode("utf-8", "surrogatepass"), object_pairs_hook=JsonMembers, parse_int=float
        )
    except (ValueError, RecursionError) as error:
        raise TooMuchError(str(error)) from error


def texts_of(value: object) -> tuple[list[Text], bool]:
    """The strings of ``value``, in order, and whether they are all of them: at most `limits.CHECKED_TEXT`
    characters.
    """
    found: list[Text] = []
    left = limits.CHECKED_TEXT
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, str):
            left -= len(one)
            if one in _KNOWN_VALUES and left >= 0:
                continue
            if left < 0:
                found.append(Text(path, one[: left + len(one)]))
                return found, False
            found.append(Text(path, one))
        elif isinstance(one, JsonMembers):
            for key, _ in one:
                if key in KNOWN_KEYS:
                    continue
                left -= len(key)
                if left < 0:
                    return found, False
                found.append(Text(f"{path}/{_pointer(key)}", key, key=True))
            stack += [(f"{path}/{_pointer(key)}", member) for key, member in reversed(one)]
        elif isinstance(one, list):
            stack += [(f"{path}/{at}", element) for at, element in reversed(list(enumerate(one)))]
    return found, True


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def member(value: object, *path: str) -> object:
    """The member of ``value`` at ``path``, the last one of its name; None if there is none."""
    for step in path:
        if not isinstance(value, JsonMembers):
            return None
        value = next((found for key, found in reversed(value) if key == step), None)
    return value


def string(value: object) -> str:
    """``value`` if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def folded(text: str) -> str:
    """What ``text`` reads like."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = _WORD.sub(_unmixed, text).replace("’", "'").replace("‘", "'")
    return " ".join(text.lower().split())


def _unmixed(found: re.Match[str]) -> str:
    word = found[0]
    if word.isascii() or not any(char < "\x80" and char.isalpha() for char in word):
        return word
    return word.translate(LOOKALIKES)


def words_of_name(name: str) -> str:
    """The words of an identifier, with spaces between them: ``readSshKey`` and ``read_ssh_key`` are the
    same."""
    return _SEPARATORS.sub(" ", _CAMEL.sub(" ", name)).strip()


def pieces(text: str) -> list[str]:
    """``text`` in pieces that can be searched without blocking other threads for long."""
    if len(text) <= PIECE:
        return [text]
    return [text[at : at + PIECE + OVERLAP] for at in range(0, len(text), PIECE)]
