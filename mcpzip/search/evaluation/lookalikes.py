"""Tools that no request can tell apart, and descriptions that say too little (pure)."""

import json
from collections.abc import Iterable

from mcpzip.model.entry import Entry
from mcpzip.search.evaluation.requests import Request, terms
from mcpzip.search.fields import Fields
from mcpzip.search.tokenizer import is_stop_word, words

SHORT = 3
"""Words that a description has at least."""
NEARLY_THE_SAME = 0.8
"""The least share of common terms of two descriptions that are nearly the same (P. Jaccard, "The distribution
of the flora in the alpine zone", New Phytologist 11, 1912)."""


def short_descriptions(entries: Iterable[Entry]) -> list[Entry]:
    """Those of ``entries`` whose description has less than `SHORT` words, sorted by name. A title counts."""
    found = [entry for entry in entries if len(words(f"{entry.title} {entry.description}")) < SHORT]
    return sorted(found, key=lambda entry: entry.name)


def twins(entries: Iterable[Entry]) -> list[tuple[Entry, ...]]:
    """The groups of ``entries`` that have the same name, in any spelling, and the same description, but
    different parameters; sorted. A description that isn't there is not the same.

    Where the parameters are equal too, a search shows the tools on one line, so that none hides another.
    """
    groups: dict[tuple[frozenset[str], str], list[Entry]] = {}
    for entry in entries:
        if description := " ".join(entry.description.split()):
            groups.setdefault((terms(entry.tool), description), []).append(entry)
    found = [
        tuple(sorted(group, key=lambda entry: entry.name))
        for group in groups.values()
        if len(group) > 1 and len({_schema(entry) for entry in group}) > 1
    ]
    return sorted(found, key=lambda group: group[0].name)


def resemblance(one: Entry, other: Entry) -> float:
    """The share of the terms of both descriptions that both have, 0…1; 0 where one has no description."""
    mine, yours = terms(one.description), terms(other.description)
    return len(mine & yours) / len(mine | yours) if mine and yours else 0.0


def missing_words(request: Request, entry: Entry) -> list[str]:
    """The words of ``request`` as written that no searched text of ``entry`` has, stop words excepted."""
    fields = Fields.of(entry)
    texts = (
        *(fields.name, fields.server, fields.title, fields.description),
        *(fields.parameters, fields.values, fields.parameter_descriptions),
    )
    known = {term for text in texts for _, term in words(text)}
    asked = words(request.meant or request.query)
    return list(
        dict.fromkeys(word for word, term in asked if term not in known and not is_stop_word((word, term)))
    )


def with_description(entry: Entry, description: str) -> Entry:
    """``entry`` with another description; all else is the same."""
    raw = json.dumps(entry.definition() | {"description": description})
    return Entry.parse(entry.server, raw.encode())


def _schema(entry: Entry) -> str:
    return json.dumps(entry.input_schema(), sort_keys=True)
