"""Series of calls that a program could have made (pure).

The rules, set before any program was written:

1. A series is three or more calls of MCP tools, one after the other or side by side, with no prompt between.
2. Every word of WORD characters or more among the arguments after the first answer stood in the conversation
   before the series, or stands in its first answer or in a result of the series before that call. So what a
   model had to make up after it had seen a result is in no series.
3. No call of a series is made twice with the same arguments, and none fails: what to do about an error is up
   to the model.
4. Searching for tools and describing them is in no series: a program names tools that are known.
5. Of the series of a collection so many are chosen as its quota says, at even distances, of each task one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.traces.keeping import text_shown
from bench.traces.trace import Call, Result, Trace

LEAST, MOST = 3, 40
"""Calls of a series."""
QUOTAS = {"Toolathlon": 14, "MCPMark": 12, "LiveMCPBench": 4}
"""Series of each collection."""
FINDERS = frozenset(
    (
        "route",
        "discover_server_categories_or_actions",
        "get_category_actions",
        "get_action_details",
        "search_documentation",
    )
)
"""Tools that find or describe others."""
WORD = 4
_FAILED = re.compile(r'\A\W*error\b|"error":\s*"|"success":\s*false|timed out', re.IGNORECASE)
"""What is in the first 400 characters of the result of a call that failed, if ``isError`` doesn't say so."""
_WORDS = re.compile(rf"\w{{{WORD},}}")


@dataclass(frozen=True)
class Series:
    """A series in a trace. first: the number of its first turn, whose answer has its first call. turns: the
    turns whose answers have its calls. results: of all of its calls.
    """

    trace: Trace
    first: int
    turns: int
    results: tuple[Result, ...]


def task_of(trace: Trace) -> str:
    """The task of a trace, of which there are traces of several models or runs."""
    parts = trace.name.split("/")
    if parts[0] == "trajs":
        return parts[-1].partition("_")[2]
    return f"{parts[1]}/{parts[-2]}" if parts[0] == "mcp_servers" else trace.name


def series_of(trace: Trace) -> Iterator[Series]:
    """Yields the series of ``trace`` that don't overlap, each as long as it can be."""
    known: set[str] = set()
    at = 0
    while at < len(trace.turns):
        found = _longest(trace, at, known)
        if found is not None:
            yield found
        after = at + (found.turns if found else 1)
        for number in range(at, after):
            known |= _said(trace, number)
        at = after


def chosen(series: Iterable[tuple[str, Series]], number: int) -> list[Series]:
    """``number`` of them, at even distances in their order. series: each with its task."""
    by_task: dict[str, Series] = {}
    for task, each in series:
        by_task.setdefault(task, each)
    of_each = list(by_task.values())
    if len(of_each) <= number:
        return of_each
    return [of_each[(2 * n + 1) * len(of_each) // (2 * number)] for n in range(number)]


def _longest(trace: Trace, first: int, before: set[str]) -> Series | None:
    """The longest series from the turn ``first`` on."""
    known = before | _said(trace, first)
    results: list[Result] = []
    count = 0
    for number in range(first, len(trace.turns)):
        turn = trace.turns[number]
        following = trace.turns[number + 1].given if number + 1 < len(trace.turns) else ()
        given = [each for each in following if isinstance(each, Result)]
        if (
            not turn.calls
            or not all(_is_possible(call) for call in turn.calls)
            or len(given) != len(turn.calls)
            or len(given) != len(following)
            or (count and not all(_words(call.arguments) <= known for call in turn.calls))
            or len(results) + len(given) > MOST
        ):
            break
        made = {(each.call.tool, each.call.arguments) for each in (*results, *given)}
        if len(made) < len(results) + len(given) or any(map(_has_failed, given)):
            break
        results += given
        for each in given:
            known |= _words(text_shown(each.raw))
        count += 1
    return Series(trace, first, count, tuple(results)) if len(results) >= LEAST else None


def _is_possible(call: Call) -> bool:
    return not call.is_own and call.tool not in FINDERS


def _has_failed(result: Result) -> bool:
    return b'"isError":true' in result.raw or _FAILED.search(text_shown(result.raw)[:400]) is not None


def _said(trace: Trace, number: int) -> set[str]:
    """The words that the turn ``number`` gives, and those of its answer."""
    turn = trace.turns[number]
    texts = [text_shown(each.raw) if isinstance(each, Result) else each for each in turn.given]
    texts += [turn.said, *(call.arguments for call in turn.calls)]
    return set().union(*map(_words, texts))


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.replace("\\n", " ").replace("\\t", " ")))
