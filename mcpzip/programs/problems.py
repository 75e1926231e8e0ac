"""What the type checker of the sandbox finds, as sentences for a model (pure).

The rule: a program is refused only for what would certainly go wrong in it: a name that doesn't exist, or a
tool that is called with other parameters than it has.
"""

from collections.abc import Collection, Mapping

from mcpzip.model.entry import Entry
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.signature import signature

MOST = 5
"""Problems that are named."""
_BLOCKING = frozenset(
    (
        "unresolved-reference",
        "unresolved-import",
        "unknown-argument",
        "missing-argument",
        "too-many-positional-arguments",
        "positional-only-parameter-as-kwarg",
        "invalid-argument-type",
    )
)
_LINE = lazy_pattern(r"[^:]*:(\d+):(\d+): \w+\[([\w-]+)\] (.*)")
_LINES_BEFORE = 1
"""Lines that the checked form of a program has before its own."""


def blocking(found: list[str], tools: Mapping[str, Entry], mappings: Collection[tuple[int, int]]) -> str:
    """The problems in ``found``, the lines of the type checker, that keep the program from running, as
    sentences, with the signatures of the ``tools`` that they are about; "" for none. mappings: the lines and
    columns, from 1, of arguments such as ``**more``: for the type checker each of their values has the type
    of all.
    """
    problems: list[str] = []
    named: list[str] = []
    more = 0
    for line in found:
        match = _LINE.match(line)
        if match is None or match[3] not in _BLOCKING or "`__future__`" in match[4]:
            continue
        if (int(match[1]) - _LINES_BEFORE, int(match[2])) in mappings:
            continue
        if len(problems) == MOST:
            more += 1
            continue
        text = match[4].replace("`", "'").rstrip(".")
        problems.append(f"Line {int(match[1]) - _LINES_BEFORE}: {text}.")
        named += [name for name in tools if f"'{name}'" in text and name not in named]
    if more:
        problems.append(f"And {more} more.")
    problems += [f"{signature(tools[name], description=0)}." for name in named]
    return " ".join(problems)
