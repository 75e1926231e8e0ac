"""One value of a config, and its key path.

The rule: each reader states the type it expects in one call. A value of another type raises an error with the
file, the key path, what was found and what to write instead. The error never quotes a value that may be
secret.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from mcpzip.config.syntax import member
from mcpzip.config.variables import expand, foreign, has_unbraced, used
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import looks_secret, register

T = TypeVar("T", bound=str)

TEXT = "write a string, in double quotes"
"""The remedy for a value that should be text."""


class Source(msgspec.Struct):
    """The state of reading one file.

    project: for the file of a project, its folder, else "". warnings: sentences about the file. faults:
    values that can't be used, because of the environment or their form; those of a server become its
    `ServerConfig.problem`. unset: the variables that are referred to and not set. noticed: all that is wrong
    with the file, for who shows each mistake at its place.
    """

    file: str
    env: Mapping[str, str]
    project: str = ""
    warnings: list[str] = []
    faults: list[ConfigError] = []
    unset: list[str] = []
    noticed: list[ConfigError] = []


class Node(msgspec.Struct, frozen=True):
    """The value at the key path ``path`` of the file."""

    source: Source
    path: str
    value: object

    def error(self, found: str, remedy: str) -> ConfigError:
        """The error that makes the whole config unusable."""
        return ConfigError(self.source.file, self.path, found, remedy)

    def warn(self, found: str, remedy: str) -> None:
        """Adds a warning about something that is ignored."""
        error = self.error(found, remedy)
        self.source.noticed.append(error)
        self.source.warnings.append(str(error))

    def fault(self, found: str, remedy: str) -> None:
        """Adds a fault: only the server or setting that is being read becomes unusable."""
        error = self.error(found, remedy)
        self.source.noticed.append(error)
        self.source.faults.append(error)

    def get(self, key: str) -> "Node | None":
        """The member ``key``; None when it is absent or null."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return None if value is None else Node(self.source, member(self.path, key), value)

    def members(self) -> "dict[str, Node]":
        """The members that aren't null, in the file's order."""
        if not isinstance(self.value, dict):
            return {}
        found = {key: self.get(key) for key in self.value}
        return {key: node for key, node in found.items() if node is not None}

    def object(self, remedy: str, known: Collection[str] = (), also: Collection[str] = ()) -> "Node":
        """This node, which must be an object. If ``known`` keys are given, any other key causes a warning.

        also: keys that are accepted too, but never suggested.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"found {_type_name(self.value)}", remedy)
        for key, value in self.value.items() if known else ():
            # Keys such as "_comment" or "//" are used as comments.
            if key not in known and key not in also and key != "$schema" and not key.startswith(("_", "//")):
                unknown = Node(self.source, member(self.path, key), value)
                unknown.warn("unknown key, ignored", _suggestion(key, known))
        return self

    def text(self, remedy: str) -> str:
        """A string with its variables replaced; "" and a fault when one is unset. Registers the values of
        variables with a secret's name for redaction.
        """
        if not isinstance(self.value, str):
            raise self.error(f"found {_type_name(self.value)}", remedy)
        expanded, unset = expand(self.value, self.source.env)
        for name, value in used(self.value, self.source.env).items():
            if looks_secret(name):
                register(value)
        self.source.unset.extend(unset)
        for name in unset:
            self.fault(
                f"the environment variable {name} is not set",
                f"set it where mcpzip is started, or give a default with ${{{name}:-…}}",
            )
        other = foreign(self.value)
        if not other and has_unbraced(self.value, self.source.env):
            other = "$NAME without braces"  # its name could be a literal secret
        if other:
            self.warn(f"{other} is not replaced", "environment variables are written ${NAME}")
        return "" if unset else expanded

    def texts(self, remedy: str) -> tuple[str, ...]:
        """A list of strings."""
        if not isinstance(self.value, list):
            raise self.error(f"found {_type_name(self.value)}", remedy)
        return tuple(
            Node(self.source, f"{self.path}[{at}]", each).text(TEXT) for at, each in enumerate(self.value)
        )

    def text_members(self, remedy: str) -> dict[str, str]:
        """An object of strings. A member that is null is absent."""
        self.object(remedy)
        return {key: node.text(TEXT) for key, node in self.members().items()}

    def number(self, unit: str, most: float) -> float:
        """A number greater than 0 and not greater than ``most``."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"found {_type_name(value)}", f"write a number of {unit}, such as 30")
        if not 0 < value <= most:
            remedy = f"write a number of {unit} above 0 and up to {most:,.0f}"
            raise self.error(f"found {str(value)[:20]}", remedy)
        return float(value)

    def number_between(self, least: float, most: float) -> float:
        """A number from ``least`` to ``most``."""
        value, remedy = self.value, f"write a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"found {_type_name(value)}", remedy)
        if not least <= value <= most:
            raise self.error(f"found {str(value)[:20]}", remedy)
        return float(value)

    def integer(self, least: int, most: int) -> int:
        """An integer from ``least`` to ``most``."""
        value = self.number_between(least, most)
        if value != int(value):
            raise self.error(f"found {self.value}", f"write a whole number from {least} to {most}")
        return int(value)

    def choice(self, options: tuple[T, ...], remedy: str) -> T | None:
        """One of the strings ``options``; None for ""."""
        text = self.text(remedy).strip()
        if text and text not in options:
            raise self.error(f"found {text!r}", remedy)
        return next((option for option in options if option == text), None)

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        if not isinstance(self.value, bool):
            raise self.error(f"found {_type_name(self.value)}", "write true or false, without quotes")
        return self.value


_TYPE_NAMES: Mapping[type, str] = {str: "a string", int: "a number", float: "a number", list: "a list"}


def _type_name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _TYPE_NAMES.get(type(value), "an object")


SYNONYMS = {
    "servers": "mcpServers",
    "enabled": "disabled",
    "includeTools": "tools.allow",
    "allowedTools": "tools.allow",
    "excludeTools": "tools.deny",
    "disabledTools": "tools.deny",
    "allow": "tools.allow",
    "deny": "tools.deny",
    "split": "expose.split",
}
"""The right key by a wrong one: keys of other programs, and frequent mistakes."""

MISPLACED = {
    "expose": 'write it beside "mcpServers": it is for all servers at once',
    "pin": "write it into a server, as mcpServers.NAME.pin",
}
"""The remedy by a key that is often put into the wrong object."""


def _suggestion(key: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # slow to import, and needed for typing mistakes only

    if key in MISPLACED:
        return MISPLACED[key]
    other = SYNONYMS.get(key, "")
    folded = {each.lower(): each for each in known}
    if other.split(".")[0] in known:
        return f"{other!r} may be meant"
    for found in get_close_matches(key.lower(), folded, n=1, cutoff=0.5):
        return f"{folded[found]!r} may be meant"
    return f"the keys here are {', '.join(sorted(known))}"
