"""Checks the text of a config before it is saved: each mistake with its line and column.

The rule: nothing of the text stays in this process. What looks secret in it is left out of what is said, and
forgotten then, because a text that is being typed has another secret with each letter.
"""

from collections.abc import Mapping

import msgspec

from mcpzip.clients import jsonc
from mcpzip.config import Config, parse
from mcpzip.config.syntax import member
from mcpzip.model.errors import ConfigError
from mcpzip.model.limits import CONFIG_PROBLEMS
from mcpzip.model.redaction import redact, temporary_secrets

Place = tuple[int, int]
"""A line and a column, from 1; (0, 0) if they are not known."""


class Problem(msgspec.Struct, frozen=True):
    """A mistake. text: what is wrong and what to write instead, without the file. place: where it begins.
    blocks: whether the whole text can't be used; else it is saved as it is, and mcpzip warns of it.
    """

    text: str
    place: Place = (0, 0)
    blocks: bool = False


class Checked(msgspec.Struct, frozen=True):
    """config: None if the text can't be used. more: how many problems are not among ``problems``."""

    config: Config | None
    problems: list[Problem]
    more: int = 0


def check(data: bytes, path: str, env: Mapping[str, str]) -> Checked:
    """What is wrong with ``data``, the text of the config at ``path``. env: see `config.load`."""
    noticed: list[ConfigError] = []
    with temporary_secrets():
        try:
            config: Config | None = parse(data, path, env, noticed=noticed)
            fatal: list[ConfigError] = []
        except ConfigError as error:
            config, fatal = None, [error]
        first = {mistake.path: mistake for mistake in reversed(noticed)}  # others follow from it
        text = data.decode("utf-8-sig", "replace")
        places = Places(text)
        problems = [_problem(error, places, blocks=True) for error in fatal]
        shown = list(first.values())[::-1][:CONFIG_PROBLEMS]
        problems += [_problem(mistake, places, blocks=False) for mistake in shown]
    problems.sort(key=lambda one: (not one.blocks, one.place))
    return Checked(config, problems, len(first) - len(shown))


def _problem(error: ConfigError, places: "Places", *, blocks: bool) -> Problem:
    place = error.place if error.place != (0, 0) or not error.path else places.of(error.path)
    text = f"{error.path}: {error.within(error.path)}" if error.path else error.within("")
    text = text.replace(f"not JSON at line {place[0]}, column {place[1]}", "not JSON", 1)
    return Problem(redact(text), place, blocks)  # once more: it may name a secret that was found later


class Places:
    """Where the members of the JSON text ``text`` stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._root: jsonc.Value | None = jsonc.parse(text)
        except ValueError:
            self._root = None

    def of(self, path: str) -> Place:
        """Where the member with the key path ``path`` begins, or the nearest one above it; the last one of
        those with the same key. (0, 0) if there is none.
        """
        value, where, at = self._root, "", -1
        while value is not None and value.members:
            named = [(member(where, each.key), each) for each in value.members]
            fitting = [
                (key, each) for key, each in named if path == key or path.startswith((f"{key}.", f"{key}["))
            ]
            if not fitting:
                break
            where, found = max(reversed(fitting), key=lambda pair: len(pair[0]))
            value, at = found.value, found.start
        return (0, 0) if at < 0 else line_and_column(self._text, at)


def line_and_column(text: str, at: int) -> Place:
    """The line and the column of the character at the offset ``at``."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
