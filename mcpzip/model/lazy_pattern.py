"""Regular expressions that are compiled when they are first used (pure).

The rule: compiling takes up to several milliseconds, which a client waits for at every start. So a pattern
that a start does not need is a `lazy_pattern`. It imports only `re`.
"""

import re

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from typing import AnyStr


class _LazyPattern:
    """Compiles a pattern at the first use of a member, and then has all members of that."""

    def __init__(self, pattern: "str | bytes", flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(self._pattern, self._flags)
        for member in _MEMBERS:
            setattr(self, member, getattr(compiled, member))
        return getattr(compiled, name)


_MEMBERS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "pattern", "flags")


def lazy_pattern(pattern: "AnyStr", flags: int = 0) -> "re.Pattern[AnyStr]":
    """`re.compile`, put off until the first use. Safe between threads: two may compile the same."""
    return _LazyPattern(pattern, flags)  # type: ignore[return-value]
