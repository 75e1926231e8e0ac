"""What the requests must be so that a table can be learned from them, and judged with those held out.

`python -m tools.semantic.check_requests` prints what isn't so, a line each, and exits with 1 if there is
anything:

- The first four requests of a tool are *far*: they share no word with its name, its server's name or the
  first sentence of its description. A few do, by words that say little ("show", "new"): `MOST_LEAKS` of a
  file may.
- The same words are a request for one tool only, but for short ones ("how many are waiting"):
  `MOST_REPEATED`.
- With `--judged FOLDER`: no request is nearly a query of a set that search is judged on, and no tool is one
  of its tools (the same server and name). FOLDER has `queries.jsonl` and `tools.jsonl`, as
  bench/retrieval/dataset.py says.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcpzip.search.fields import first_sentence
from mcpzip.search.tokenizer import is_stop_word, words
from tools.semantic.pairs import FAR, REQUESTS, Tool, read, read_file

MOST_LEAKS = 0.08
"""The share of the far requests of a file that may have a word of their tool."""
MOST_REPEATED = 0.01
"""The share of all requests that may be there for several tools."""
NEAR = 0.8
"""The share of common words, of all of both, from which two requests are nearly the same."""
_LEAST = 3
"""Words of a request below which it is near to nothing."""


def content(text: str) -> frozenset[str]:
    """The terms of the words of ``text`` that mean something."""
    return frozenset(term for word, term in words(text) if not is_stop_word((word, term)) and word.isalpha())


def leaks(tools: Iterable[Tool]) -> list[tuple[Tool, str]]:
    """The far requests that have a word of their tool."""
    found = []
    for tool in tools:
        own = content(f"{tool.name} {tool.server} {first_sentence(tool.description)}")
        found += [(tool, request) for request in tool.requests[:FAR] if content(request) & own]
    return found


def repeated(tools: Iterable[Tool]) -> list[tuple[Tool, str]]:
    """The requests that an earlier tool has with the same words."""
    seen: dict[tuple[str, ...], Tool] = {}
    found = []
    for tool in tools:
        for request in tool.requests:
            key = tuple(word for word, _ in words(request))
            if seen.setdefault(key, tool) is not tool:
                found.append((tool, request))
    return found


def near(requests: Iterable[str], queries: Sequence[str]) -> list[tuple[str, str]]:
    """The requests that are nearly one of ``queries``, with that one: `NEAR` of the words are common."""
    terms = [content(query) for query in queries]
    by_term: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(terms):
        for term in each:
            by_term[term].append(number)
    found = []
    for request in requests:
        own = content(request)
        numbers = {number for term in own for number in by_term.get(term, ())} if len(own) >= _LEAST else ()
        like = [n for n in numbers if len(own & terms[n]) >= NEAR * len(own | terms[n])]
        found += [(request, queries[n]) for n in like[:1]]
    return found


def faults(folder: Path = REQUESTS, judged: Path | None = None) -> list[str]:
    """What isn't as it must be, a sentence each. Raises `ValueError` as `pairs.read` does."""
    found = []
    for file in sorted(folder.glob("*.tsv")):
        tools = read_file(file)
        far = sum(len(tool.requests[:FAR]) for tool in tools)
        if len(leaking := leaks(tools)) > MOST_LEAKS * far:
            shown = "; ".join(f"{tool.name}: {request!r}" for tool, request in leaking[:3])
            found.append(
                f"{file.name}: {len(leaking)} of {far} far requests have a word of their tool: {shown}"
            )
    tools = read(folder)
    requests = [request for tool in tools for request in tool.requests]
    if len(more := repeated(tools)) > MOST_REPEATED * len(requests):
        shown = "; ".join(repr(request) for _, request in more[:3])
        found.append(f"{len(more)} of {len(requests)} requests are there for several tools: {shown}")
    if judged is not None:
        known = {(row["server"], row["name"]) for row in _rows(judged / "tools.jsonl")}
        same = [tool for tool in tools if (tool.server, tool.name) in known]
        found += [f"{tool.server}/{tool.name} is a tool that search is judged on" for tool in same]
        queries = [row["query"] for row in _rows(judged / "queries.jsonl")]
        found += [
            f"{one!r} is nearly {other!r}, which search is judged on"
            for one, other in near(requests, queries)
        ]
    return found


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judged", type=Path, metavar="FOLDER")
    wrong = faults(judged=parser.parse_args().judged)
    for fault in wrong:
        print(fault)
    sys.exit(1 if wrong else 0)
