"""Tasks of several needs, composed of the requests of a folder or of `bench.retrieval.alike`: two to four,
joined in twelve ways, a third of them with a sentence before or after that asks for nothing.

    python -m bench.retrieval.tasks OUT [--of FOLDER] [--seed N] [--tasks N]
    python -m bench.retrieval OUT                                              measures them

Kinds: "one server" and "several servers" by where the right tools are, and "list", in which one verb has
several objects ("list the users and the open invoices").
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.retrieval.alike import made, queries
from bench.retrieval.dataset import Query, read_dataset, write_dataset
from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import words
from mcpzip.search.verbs import families

SEED = 1
TASKS = 200  # of servers; and as many lists
KINDS = ("step", "natural", "plain")  # of the folder's requests that are composed
MOST_WORDS = 12  # of a request in a list
BEFORE = (
    "I'm getting ready for a busy week.",
    "We have a deadline on Friday and the team is short of people.",
    "My manager asked for this yesterday.",
    "It's for a presentation to our customers.",
    "The budget is about 5,000 euros.",
)
AFTER = (
    "Thanks a lot!",
    "Please double-check everything.",
    "Keep it short.",
    "Make sure nothing is missing.",
    "Let me know if anything looks strange.",
)
JOINED: tuple[Callable[[list[str]], str], ...] = (
    lambda parts: " ".join(f"{_capital(part)}." for part in parts),
    lambda parts: f"{_capital(', then '.join(parts))}.",
    lambda parts: f"{_capital(', '.join(parts[:-1]))}, and {parts[-1]}.",
    lambda parts: f"First {parts[0]}. " + " ".join(f"Next, {part}." for part in parts[1:]),
    lambda parts: f"I need to {', '.join(parts[:-1])} and {parts[-1]}.",
    lambda parts: f"{_capital(parts[0])} so that I can {' and '.join(parts[1:])}.",
    lambda parts: "\n".join(f"{number}. {_capital(part)}" for number, part in enumerate(parts, 1)),
    lambda parts: f"Could you {parts[0]}? " + " ".join(f"Also {part}." for part in parts[1:]),
    lambda parts: f"{_capital(' as well as '.join(parts))}.",
    lambda parts: f"{_capital(parts[0])} before you {' and '.join(parts[1:])}.",
    lambda parts: _capital(" plus ".join(parts)),
    lambda parts: f"{_capital(parts[0])} and then {', '.join(parts[1:])}",
)


def composed(requests: Sequence[Query], count: int, rng: random.Random) -> list[Query]:
    """``count`` tasks, half of them of one server each if any has four requests, and as many lists."""
    by_server: dict[str, list[Query]] = {}
    by_verb: dict[str, list[Query]] = {}
    for request in requests:
        for server in sorted({_server(tool) for tool in request.needs[0]}):
            by_server.setdefault(server, []).append(request)
        first, _, rest = _plain(request.text).partition(" ")
        if len(rest.split()) in range(2, MOST_WORDS) and any(families(term) for _, term in words(first)):
            by_verb.setdefault(first, []).append(request)
    large = [group for group in by_server.values() if len(group) >= 4]
    found: list[Query] = []
    for number in range(count):
        one = number % 2 == 1 and bool(large)
        parts = _different(rng, rng.choice(large) if one else requests, rng.choice((2, 2, 3, 3, 4)))
        if len(parts) > 1:
            text = rng.choice(JOINED)([_plain(part.text) for part in parts])
            text = f"{rng.choice(BEFORE)} {text}" if rng.random() < 1 / 3 else text
            text = f"{text} {rng.choice(AFTER)}" if rng.random() < 1 / 3 else text
            found.append(_task("one server" if one else "several servers", text, parts))
    verbs = [verb for verb in sorted(by_verb) if len(by_verb[verb]) > 2]
    for _ in range(count if verbs else 0):
        verb = rng.choice(verbs)
        parts = _different(rng, by_verb[verb], rng.choice((2, 2, 3)))
        if len(parts) > 1:
            objects = [_plain(part.text).partition(" ")[2] for part in parts]
            found.append(_task("list", f"{verb} {', '.join(objects[:-1])} and {objects[-1]}", parts))
    return found


def _different(rng: random.Random, requests: Sequence[Query], count: int) -> list[Query]:
    """Up to ``count`` of ``requests`` that no tool answers together."""
    found: list[Query] = []
    for request in rng.sample(requests, min(len(requests), 12)):
        if len(found) < count and all(request.needs[0].isdisjoint(other.needs[0]) for other in found):
            found.append(request)
    return found


def _task(kind: str, text: str, parts: Sequence[Query]) -> Query:
    relevance = {tool: grade for part in parts for tool, grade in part.relevance.items()}
    relevance |= {tool: 2 for part in parts for tool in part.needs[0]}
    return Query("", kind, text, relevance, tuple(part.needs[0] for part in parts))


def _plain(text: str) -> str:
    """``text`` as a part of a sentence: without a full stop and a capital, unless a name begins it."""
    text = text.strip().rstrip(".!?")
    return text[:1].lower() + text[1:] if re.match(r"[A-Z][a-z]+ ", text) else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _server(tool: str) -> str:
    return tool.partition("__")[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.tasks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--of", type=Path, metavar="FOLDER", help="with requests; made-up ones if left out")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--tasks", type=int, default=TASKS)
    options = parser.parse_args()
    if options.of:
        dataset = read_dataset(options.of)
        entries: Sequence[Entry] = dataset.entries
        requests = [query for query in dataset.queries if query.kind in KINDS and len(query.needs) == 1]
        if not requests:
            parser.error(
                f"{options.of} has no requests of the kinds {', '.join(KINDS)} that one tool answers"
            )
    else:
        entries, alike = made()
        requests = queries(alike)
    tasks = composed(requests, options.tasks, random.Random(options.seed))
    write_dataset(options.out, entries, tasks)
    print(f"{len(tasks)} tasks, {len(entries)} tools")


if __name__ == "__main__":
    main()
