"""Parses the JSON text of a config.

The rule: people write this file by hand, so an error gives the line, the column and the kind of mistake.
"""

import json
from collections import Counter

from mcpzip.model.errors import ConfigError

EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
"""The smallest useful config."""


def decode(data: bytes, file: str) -> object:
    """The JSON value in ``data``: UTF-8, or UTF-16 or UTF-32 as some editors write, with or without a byte
    order mark. Raises ConfigError for invalid JSON, and for an object with a repeated key.
    """
    try:
        text = data.decode(json.detect_encoding(data)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            file, "", f"line {line} is not UTF-8", "save the file as UTF-8", place=(line, 0)
        ) from error
    if not text.strip():
        raise ConfigError(file, "", "the file is empty", f"write at least {EXAMPLE}")
    try:
        document: object = json.loads(text, object_pairs_hook=_Object)
        _check_repeated(document, "", file)
    except json.JSONDecodeError as error:
        at, found, remedy = _diagnosis(text, error)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        found = f"not JSON at line {line}, column {column}: {found}"
        raise ConfigError(file, "", found, remedy, place=(line, column)) from error
    except RecursionError as error:
        raise ConfigError(file, "", "it is nested too deeply", "remove some brackets") from error
    except ValueError as error:
        raise ConfigError(file, "", "a number has too many digits", "write a shorter one") from error
    return document


def member(path: str, key: str) -> str:
    """The key path of a member, such as ``mcpServers.slack``. Keys with special characters are quoted."""
    plain = bool(key) and all(c.isalnum() or c in "_-.$" for c in key)
    shown = key if plain else json.dumps(key, ensure_ascii=False)
    return f"{path}.{shown}" if path else shown


class _Object(dict[str, object]):
    """A JSON object, and its repeated keys."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = [key for key, count in counts.items() if count > 1]


def _check_repeated(value: object, path: str, file: str) -> None:
    if isinstance(value, _Object):
        for key in value.repeated:
            where = member(path, key)
            raise ConfigError(file, where, "the key is repeated", "keep one and rename or remove the rest")
        for key, inner in value.items():
            _check_repeated(inner, member(path, key), file)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _check_repeated(inner, f"{path}[{at}]", file)


_QUOTES = "'‘’“”„«»`"
_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


def _diagnosis(text: str, error: json.JSONDecodeError) -> tuple[int, str, str]:
    """The offset of the mistake, its kind and the remedy. The most specific kinds are checked first."""
    at = error.pos + len(text[error.pos :]) - len(text[error.pos :].lstrip())
    here, before = text[at:], text[:at].rstrip()
    # Python 3.13 reports the position of a trailing comma, earlier versions the position after the comma.
    comma, after = (at, here[1:].lstrip()) if here.startswith(",") else (len(before) - 1, here)
    if text[comma : comma + 1] == "," and after[:1] in ("}", "]"):
        return comma, f"a comma before the closing '{after[0]}'", "remove the comma"
    if here.startswith(("//", "/*", "#")):
        return at, "a comment", 'remove it, or make it a member such as "_comment": "…"'
    if here[:1] and here[0] in _QUOTES:
        return at, f"a {here[0]} quote", 'write straight double quotes (")'
    for word, json_word in _WORDS.items():
        if here.startswith(word):
            return at, word, f"write {json_word}"
    if not here:
        return at, "the file ends too early", "close the brackets and quotes that are open"
    for message, (found, remedy) in _BY_MESSAGE.items():
        if error.msg.startswith(message):
            return at, found, remedy
    # Only the first letter is shown, because the text may be an unquoted secret.
    return at, f"something that begins with {here[0]!r}", "write a string in double quotes, or a number"


_BY_MESSAGE = {
    "Invalid \\": ("a backslash that escapes nothing", "double it, as in C:\\\\Users\\\\me"),
    "Invalid control character": (
        "a line break or a tab inside a string",
        "close the string, or write \\n for the break",
    ),
    "Unterminated string": ("a string without its closing quote", "close the string"),
    "Expecting ',' delimiter": ("two members without a comma between them", "put a comma before it"),
    "Expecting ':' delimiter": ("a key without a value", "put a colon and a value after it"),
    "Expecting property name": ("something that is not a quoted key", 'put the key in double quotes (")'),
    "Extra data": (
        "more text after the end of the object",
        "remove it, or the bracket that closes too early",
    ),
}
