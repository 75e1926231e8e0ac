"""A made-up catalog in which many tools are alike: 3,400 tools of 80 servers, four of each of 20 kinds, and
requests for them; and how far the words strong, fair and weak can be trusted there.

    python -m bench.retrieval.alike                  what was right, by quality
    python -m bench.retrieval.alike --write FOLDER   a folder for `bench.retrieval`

``many_alike/kinds.txt`` has the kinds: their servers, the things that can be created, listed, shown, changed
and deleted, and other tools. ``requests.tsv`` has the kind (``@server`` if the request names one), the tool,
and a request in other words. It was written before a ranking was looked at. Requests of kind ``-`` ask for
what no server does. The four servers of a kind differ in the spelling of names, in verbs and in descriptions,
and each lacks some of the tools.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval.dataset import Query, write_dataset
from bench.tables import table
from mcpzip.model.entry import Entry
from mcpzip.search import Searcher
from mcpzip.search.semantic import local_table

FOLDER = Path(__file__).parent / "many_alike"
LACKS = 0.1  # of its kind's tools, a server
SEED = 17
OPERATIONS = {
    "create": (("create", "add", "new", "make"), "Create a {thing}", ("name", "options")),
    "list": (("list", "list", "get all", "enumerate"), "List every {thing}", ("cursor", "limit")),
    "get": (("get", "fetch", "show", "describe"), "Details of a {thing}", ("id",)),
    "update": (("update", "edit", "modify", "change"), "Change a {thing}", ("id", "name")),
    "delete": (("delete", "remove", "delete", "destroy"), "Delete a {thing}", ("id",)),
}
STYLES = (
    "{text}.",
    "{text} in {server}.",
    "Use this tool in {server} to do the following: {text}. Returns JSON.",
    "{text}. Needs an access token of {server}.",
)
QUALITIES = ("strong", "fair", "weak", "none")


@dataclass(frozen=True)
class Tool:
    """A tool that all servers of a kind have, unless they lack it. verbs: the verb of each server, if any."""

    words: str
    text: str
    parameters: tuple[str, ...]
    verbs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """right: the names of the tools that answer it; none if no tool does."""

    text: str
    right: frozenset[str]


def kinds() -> dict[str, tuple[tuple[str, ...], tuple[Tool, ...]]]:
    """The servers and the tools of each kind."""
    found: dict[str, tuple[tuple[str, ...], tuple[Tool, ...]]] = {}
    for block in (FOLDER / "kinds.txt").read_text(encoding="utf-8").split("\n\n"):
        head, things, *others = block.strip().splitlines()
        kind, *servers = head.replace("[", "").replace("]", "").split()
        tools = [
            Tool(f"{operation} {thing}", text.format(thing=thing), parameters, verbs)
            for thing in things.removeprefix("objects: ").split(", ")
            for operation, (verbs, text, parameters) in OPERATIONS.items()
        ]
        for line in others:
            signature, text = line.split(": ", 1)
            words, parameters = re.fullmatch(r"([^(]+)\((.*)\)", signature).groups()  # type: ignore[union-attr]
            tools.append(Tool(words, text, tuple(filter(None, parameters.split(", ")))))
        found[kind] = (tuple(servers), tuple(tools))
    return found


def made() -> tuple[list[Entry], list[Request]]:
    """The tools and the requests."""
    lines = [line.split("\t") for line in (FOLDER / "requests.tsv").read_text(encoding="utf-8").splitlines()]
    wanted = {(where.partition("@")[2], words) for where, words, _ in lines}
    entries: list[Entry] = []
    names: dict[tuple[str, str], dict[str, str]] = {}  # by kind and tool: by server
    rng = random.Random(SEED)
    for kind, (servers, tools) in kinds().items():
        for place, server in enumerate(servers):
            for tool in tools:
                if rng.random() >= LACKS or (server, tool.words) in wanted:
                    entries.append(_entry(server, place, tool))
                    names.setdefault((kind, tool.words), {})[server] = entries[-1].name
    requests = []
    for where, words, text in lines:
        kind, _, server = where.partition("@")
        right = {} if kind == "-" else names[kind, words]
        requests.append(Request(text, frozenset([right[server]] if server else right.values())))
    return entries, requests


def _entry(server: str, place: int, tool: Tool) -> Entry:
    words = tool.words.split()
    if tool.verbs:
        words = [*tool.verbs[place].split(), *words[1:]]
    if place == 3 and tool.verbs:
        words = [*words[1:], words[0]]
    name = "_".join(words)
    if place == 1:
        name = words[0] + "".join(word.capitalize() for word in words[1:])
    elif place == 2:
        name = "-".join((server, *words))
    text = STYLES[place].format(text=tool.text, server=server.capitalize())
    properties = {parameter: {"type": "string"} for parameter in tool.parameters}
    made = {"name": name, "description": text, "inputSchema": {"type": "object", "properties": properties}}
    return Entry.parse(server, json.dumps(made).encode())


def queries(requests: Iterable[Request]) -> list[Query]:
    """Those of ``requests`` that a tool answers."""
    return [
        Query("", "natural", request.text, dict.fromkeys(sorted(request.right), 2), (request.right,))
        for request in requests
        if request.right
    ]


def judged(searcher: Searcher, requests: list[Request]) -> Iterator[tuple[Request, str, int | None]]:
    """Of each request the quality of its results, and the place of the first right tool among ten, from 0."""
    for request in requests:
        results = searcher.search(request.text, 10)
        places = (
            n
            for n, hit in enumerate(results.hits)
            if not request.right.isdisjoint((hit.entry.name, *hit.also))
        )
        yield request, results.quality, next(places, None)


def report(found: list[tuple[Request, str, int | None]]) -> str:
    """A table: for each quality, how many requests have it, and how many of these are right."""
    rows = []
    unanswered = Counter(quality for request, quality, _ in found if not request.right)
    for quality in (*QUALITIES, "all"):
        places = [place for request, each, place in found if request.right and quality in (each, "all")]
        first, among = places.count(0), sum(place is not None and place < 5 for place in places)
        count = len(places) or 1
        none = unanswered.total() if quality == "all" else unanswered[quality]
        rows.append([quality, str(len(places)), f"{first / count:.2f}", f"{among / count:.2f}", str(none)])
    return table(["quality", "n", "R@1", "R@5", "of requests for what no tool does"], rows)


def write(folder: Path) -> None:
    """Write the files that `bench.retrieval.dataset` describes, of the requests that a tool answers."""
    entries, requests = made()
    write_dataset(folder, entries, queries(requests))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.alike", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.write:
        write(options.write)
        return
    entries, requests = made()
    searcher = Searcher(local_table())
    searcher.index(entries, "1")
    print(f"{len(entries)} tools, {len(requests)} requests\n\n{report(list(judged(searcher, requests)))}")


if __name__ == "__main__":
    main()
