"""Replaces ``${NAME}`` in the strings of a config.

    ${NAME}             the variable; when it is unset, the string can't be used
    ${NAME:-default}    the variable, or the default when it is unset or empty (as in POSIX sh, XCU 2.6.2)
    $${NAME}            the text ${NAME}

The rule: any other ``$`` or brace stays unchanged.
"""

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNBRACED = re.compile(r"(?:Bearer |Basic |[\w-]+=)?\$([A-Za-z_][A-Za-z0-9_]{2,})")
_FOREIGN = re.compile(r"\$\{(?:env|input|secret|keyring|command|config):[^}]*\}")


def expand(text: str, env: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """``text`` with its variables replaced, and the names of those that are unset and have no default."""
    if "${" not in text:
        return text, ()
    unset: list[str] = []

    def value(found: re.Match[str]) -> str:
        escaped, name, default = found.groups()
        if escaped:
            return found[0][1:]
        if default is not None:
            return env.get(name) or str(default)
        if name not in env:
            unset.append(name)
        return env.get(name, "")

    return _VARIABLE.sub(value, text), tuple(dict.fromkeys(unset))


def used(text: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that `expand` replaces in ``text``, with their values."""
    found = _VARIABLE.finditer(text) if "${" in text else ()
    return {each[2]: env[each[2]] for each in found if not each[1] and env.get(each[2])}


def referred(value: object) -> set[str]:
    """The variables that the strings in ``value``, a JSON value, refer to."""
    found: set[str] = set()
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str) and "${" in each:
            found |= {variable[2] for variable in _VARIABLE.finditer(each) if not variable[1]}
        elif isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list):
            rest += each
    return found


def foreign(text: str) -> str | None:
    """The first reference in another program's syntax, such as ``${env:NAME}``; None without one."""
    found = _FOREIGN.search(text) if "${" in text else None
    return found[0] if found else None


def has_unbraced(text: str, env: Mapping[str, str]) -> bool:
    """Whether ``text`` is a reference without braces, such as ``$TOKEN`` or ``Bearer $TOKEN``: to a variable
    that is set, or that has a name in capitals.
    """
    found = _UNBRACED.fullmatch(text) if "$" in text else None
    return found is not None and (found[1] in env or found[1].isupper())
