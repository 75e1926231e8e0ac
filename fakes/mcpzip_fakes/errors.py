"""Errors in a scenario file, as one sentence: the file, the key path, what was found, what to write.

msgspec checks types and unknown keys, and reports them as ``Expected `int`, got `str` - at
`$.tools[3].result.delay```. `scenario_error` turns that, and our own ``ValueError("found; remedy")``, into a
`ScenarioError`.
"""

import re

import msgspec

from mcpzip.model.errors import ConfigError

_TYPE = re.compile(r"Expected `(?P<want>[^`]+)`(?: of length (?P<length>[^,]+))?, got `?(?P<got>[^`]+)`?")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]+)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


class ScenarioError(ConfigError):
    """A scenario can't be used. ``file``, ``path``, ``found``, ``remedy``: see `ConfigError`."""


def scenario_error(
    file: str, error: msgspec.ValidationError, keys: dict[str, tuple[str, ...]]
) -> ScenarioError:
    """The ScenarioError for msgspec's error in ``file``.

    ``keys``: the legal keys of each kind of table, by its path or the last name in that ("" for the top).
    """
    text, _, where = str(error).partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if found := _UNKNOWN.fullmatch(text):
        whole = re.sub(r"\[.*?\]", "", path)
        legal = keys.get(whole, keys.get(whole.rpartition(".")[2], ()))
        return ScenarioError(
            file, path, f"there is no key {found['key']!r} here", _nearest(found["key"], legal)
        )
    if found := _MISSING.fullmatch(text):
        return ScenarioError(file, path, f"the key {found['key']!r} is missing", "add it")
    if found := _TYPE.fullmatch(text):
        wanted = " or ".join(_WORDS.get(word, word) for word in found["want"].split(" | ") if word != "null")
        return ScenarioError(
            file, path, f"{_WORDS.get(found['got'], found['got'])} stands here", f"write {wanted}"
        )
    stands, _, remedy = text.partition("; ")
    return ScenarioError(file, path, stands, remedy or "correct it")


def _nearest(word: str, legal: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # imported only for an error, because the import takes time

    near = get_close_matches(word, legal, n=1)
    if near:
        return f"the nearest is {near[0]!r}"
    return f"the keys are {', '.join(legal)}" if legal else "remove it"
