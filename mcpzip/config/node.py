"""One value of a config, and where it stands.

The rule: whoever reads a value says what it must be, in one call, and a value that isn't raises an error that
names the file, the key path, what was found and what would do. Values that may be secret are never quoted in
it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mcpzip.config.syntax import member
from mcpzip.config.variables import expand, foreign, used
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import looks_secret, register

TEXT = "write a string, in double quotes"
"""What to do about a value that should be text."""


@dataclass(slots=True)
class Source:
    """What reading one file needs, and what it finds.

    warnings: sentences about the file. faults: sentences about values that can't be used as things are at run
    time; who reads a server takes them from here as that server's problem.
    """

    file: str
    env: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Node:
    """``value`` at the key path ``path`` of the file."""

    source: Source
    path: str
    value: object

    def wrong(self, found: str, remedy: str) -> ConfigError:
        """The error that makes the whole config unusable."""
        return ConfigError(self.source.file, self.path, found, remedy)

    def warn(self, found: str, remedy: str) -> None:
        """Note something that can be passed over."""
        self.source.warnings.append(str(self.wrong(found, remedy)))

    def fault(self, found: str, remedy: str) -> None:
        """Note something that makes only what is read here unusable."""
        self.source.faults.append(str(self.wrong(found, remedy)))

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
        """This node, which must be an object. With ``known`` keys given, any other draws a warning.

        also: keys that are known, but never proposed.
        """
        if not isinstance(self.value, dict):
            raise self.wrong(f"found {_kind(self.value)}", remedy)
        for key, value in self.value.items() if known else ():
            # A key such as "_comment" or "//" is how people comment in JSON.
            if key not in known and key not in also and key != "$schema" and not key.startswith(("_", "//")):
                stranger = Node(self.source, member(self.path, key), value)
                stranger.warn("unknown key, passed over", _meant(key, known))
        return self

    def text(self, remedy: str) -> str:
        """A string, its variables replaced; "" and a fault when one of them isn't set."""
        if not isinstance(self.value, str):
            raise self.wrong(f"found {_kind(self.value)}", remedy)
        expanded, unset = expand(self.value, self.source.env)
        for name, value in used(self.value, self.source.env).items():
            if looks_secret(name):
                register(value)
        for name in unset:
            self.fault(
                f"the environment variable {name} is not set",
                f"set it where mcpzip is started, or give a default with ${{{name}:-…}}",
            )
        other = foreign(self.value)
        if other:
            self.warn(f"{other} is taken as it stands", "environment variables are written ${NAME}")
        return "" if unset else expanded

    def texts(self, remedy: str) -> tuple[str, ...]:
        """A list of strings."""
        if not isinstance(self.value, list):
            raise self.wrong(f"found {_kind(self.value)}", remedy)
        return tuple(
            Node(self.source, f"{self.path}[{at}]", each).text("write a string, in double quotes")
            for at, each in enumerate(self.value)
        )

    def text_members(self, remedy: str) -> dict[str, str]:
        """An object of strings. A member that is null is absent."""
        self.object(remedy)
        return {key: node.text("write a string, in double quotes") for key, node in self.members().items()}

    def number(self, unit: str, most: float) -> float:
        """A number greater than 0 and not greater than ``most``."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"found {_kind(value)}", f"write a number of {unit}, such as 30")
        if not 0 < value <= most:
            remedy = f"write a number of {unit} above 0 and up to {most:,.0f}"
            raise self.wrong(f"found {_short(value)}", remedy)
        return float(value)

    def within(self, least: float, most: float) -> float:
        """A number from ``least`` to ``most``."""
        value, remedy = self.value, f"write a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"found {_kind(value)}", remedy)
        if not least <= value <= most:
            raise self.wrong(f"found {_short(value)}", remedy)
        return float(value)

    def whole(self, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``."""
        value = self.within(least, most)
        if value != int(value):
            raise self.wrong(f"found {self.value}", f"write a whole number from {least} to {most}")
        return int(value)

    def flag(self) -> bool:
        """``true`` or ``false``."""
        if not isinstance(self.value, bool):
            raise self.wrong(f"found {_kind(self.value)}", "write true or false, without quotes")
        return self.value


_KINDS: Mapping[type, str] = {str: "a string", int: "a number", float: "a number", list: "a list"}


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _KINDS.get(type(value), "an object")


def _short(value: float) -> str:
    return str(value)[:20]


OTHERS = {
    "servers": "mcpServers",
    "transport": "type",
    "transportType": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "enabled": "disabled",
    "includeTools": "tools.allow",
    "allowedTools": "tools.allow",
    "excludeTools": "tools.deny",
    "disabledTools": "tools.deny",
    "allow": "tools.allow",
    "deny": "tools.deny",
}
"""What other programs, and people in a hurry, call our keys."""

ELSEWHERE = {
    "expose": 'write it beside "mcpServers": it is for all servers at once',
    "pin": "write it into a server, as mcpServers.NAME.pin",
}
"""Where a key belongs that is looked for in other places too."""


def _meant(key: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # slow to import, and wanted only for a slip

    if key in ELSEWHERE:
        return ELSEWHERE[key]
    other = OTHERS.get(key, "")
    folded = {each.lower(): each for each in known}
    if other.split(".")[0] in known:
        return f"{other!r} may be meant"
    for found in get_close_matches(key.lower(), folded, n=1, cutoff=0.5):
        return f"{folded[found]!r} may be meant"
    return f"the keys here are {', '.join(sorted(known))}"
