"""All checks of one server's items, and of one item that changed (pure).

1. Nothing here decides what happens to an item; it says what a person should look at.
2. What is looked at is bounded (`limits.CHECKED_TEXT` characters of an item, `limits.CHECK_FINDINGS` findings
   of each severity), and the time grows with its length only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mcpzip.checks import capability, encoded, hidden, instructions, names, parameters, ranking
from mcpzip.checks.changes import hints_changed, schema_widened
from mcpzip.checks.finding import SEVERITIES, Finding, Hit, Severity, finding
from mcpzip.checks.others import NOBODY, Described, Others, described
from mcpzip.checks.rules import Rule
from mcpzip.checks.texts import (
    Text,
    TooMuchError,
    decoded,
    folded,
    member,
    pieces,
    string,
    texts_of,
    words_of_name,
)
from mcpzip.model import limits
from mcpzip.model.surface import Item

_MANY_TOOLS = 2_000
"""Tools of one server that crowd those of others out."""
_CROWDING = 65_536
"""Characters of an item's text that are more than any honest description."""
_PARAMETER = re.compile(r"/properties/[^/]{1,300}$")
_BETWEEN = "\n| "
"""Between the texts of an item while they are searched together."""
_IDENTIFIERS = ("tool", "prompt")


def check_items(items: Sequence[Item], others: Others = NOBODY, server: str = "") -> list[Finding]:
    """What is odd about the ``items`` of one server, the worst first. others: all servers; server: the name
    of this one in the config, so that it isn't compared with itself.
    """
    found: list[Finding] = []
    tools: list[Described] = []
    by_name: dict[str, Item] = {}
    for item in items:
        value = _decoded(item)
        found += check_item(item, others, server, value)
        if item.kind == "tool" and others.tools:
            tools.append(described(server, item, value))
            by_name[item.name] = item
    for one, hit in names.copies(tools, others):
        found.append(finding(by_name[one.tool], "/description", one.tool, hit))
    itself = Item("server", "", b"{}")
    found += [finding(itself, "/name", server, hit) for hit in names.lookalike(server, server, others)]
    found += [finding(itself, "/name", server, hit) for hit in names.typosquat(server, server, others)]
    if sum(item.kind == "tool" for item in items) > _MANY_TOOLS:
        text = f"{sum(item.kind == 'tool' for item in items):,} tools"
        found.append(finding(itself, "", text, Hit("size.large", "risky")))
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def compare(old: Item | None, new: Item, others: Others = NOBODY, server: str = "") -> list[Finding]:
    """What is odd about ``new`` that was not so of ``old``, the worst first: its texts, whether it is now
    nearly another server's tool, and what its call may do. old: None if there was no such item.

    A string that was changed is new as a whole: whoever had one odd sentence in it could add another that no
    check tells apart. What could not be read before isn't known either.
    """
    if old is not None and old.body == new.body:
        return []
    value = _decoded(new)
    told = [*_odd(new, others, server, value), *_copied(new, others, server, value)]
    changes: list[Finding] = []
    if old is not None:
        before = _decoded(old)
        known = {
            (one.check, one.severity, text)
            for one, text in (*_odd(old, others, server, before), *_copied(old, others, server, before))
            if one.check != "size.unread"
        }
        told = [(one, text) for one, text in told if (one.check, one.severity, text) not in known]
        if new.kind == "tool":
            try:
                made = [*hints_changed(before, value), *schema_widened(before, value)]
            except RecursionError:
                made = [("", "nested too deep to be compared", Hit("change.widened", "risky"))]
            changes = [finding(new, *change) for change in made[: limits.CHECK_FINDINGS]]
    found = [*_fewest(one for one, _ in told), *changes]
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def check_item(item: Item, others: Others, server: str, value: object) -> list[Finding]:
    """What is odd about one item by itself. value: its decoded body; None if it can't be decoded."""
    return _fewest(one for one, _ in _odd(item, others, server, value))


Told = tuple[Finding, str]
"""A finding, and the whole string that it is about."""


def _fewest(findings: Iterable[Finding]) -> list[Finding]:
    counts = Counter[Severity]()
    found: list[Finding] = []
    for one in findings:
        counts[one.severity] += 1
        if counts[one.severity] <= limits.CHECK_FINDINGS:  # so that many of little hide none of much
            found.append(one)
    return found


def _odd(item: Item, others: Others, server: str, value: object) -> Iterator[Told]:
    """Everything that is odd about one item by itself."""
    texts, whole = ([], False) if value is None else texts_of(value)
    if not whole:
        yield finding(item, "", item.name, Hit("size.unread", "hard")), ""
    if value is not None:
        yield from _findings(item, texts, others, server, value)


def _copied(item: Item, others: Others, server: str, value: object) -> Iterator[Told]:
    """Whether the tool is nearly another server's."""
    if item.kind == "tool" and others.tools:
        for _, hit in names.copies([described(server, item, value)], others):
            yield finding(item, "/description", item.name, hit), ""


def _decoded(item: Item) -> object:
    try:
        return decoded(item.body)
    except TooMuchError:
        return None


def _findings(item: Item, texts: list[Text], others: Others, server: str, value: object) -> Iterator[Told]:
    whole = _BETWEEN.join([text.text for text in texts])
    spaced = [words_of_name(text.text) for text in texts if text.key]
    read = folded(_BETWEEN.join([whole, words_of_name(item.name), *spaced]))
    rules, praise = instructions.RULES.found(read), ranking.PRAISE.found(read)
    about = folded(f"{words_of_name(item.name)} {string(member(value, 'description'))[:4_000]}")
    suspect = hidden.may_hide(whole)
    coded = encoded.may_be_encoded(whole)
    asks = item.kind == "tool" and parameters.may_ask(read)
    turns = "assistant:" in read
    named = names.mentioned(whole, server, others)
    if item.kind in _IDENTIFIERS:
        for hit in names.lookalike(item.name, server, others):
            yield finding(item, "/name", item.name, hit), item.name
    if len(whole) > ranking.LARGE:
        yield finding(item, "", f"{len(whole):,} characters", Hit("size.large", _size(len(whole)))), ""
    for text in texts:
        parameter = text.key and _PARAMETER.search(text.path) is not None
        name = parameter or (item.kind in _IDENTIFIERS and text.path == "/name")
        if suspect:
            for hit in hidden.hidden_text(text.text, name=name):
                yield finding(item, text.path, text.text, hit), text.text
        if rules or praise or turns:
            yield from _phrases(item, text, rules, praise)
        if coded and not text.key:
            for hit in encoded.encoded_text(text.text):
                yield finding(item, text.path, text.text, hit), text.text
        if parameter:
            yield from _parameter(item, text, server, others, about)
        elif not text.key:
            yield from _description(item, text, named, about if asks else "")
    if item.kind == "tool":
        for path, shown, hit in capability.mismatch(item.name, value):
            yield finding(item, path, shown, hit), shown


def _phrases(item: Item, text: Text, rules: list[Rule], praise: list[Rule]) -> Iterator[Told]:
    for piece in pieces(words_of_name(text.text) if text.key or text.path == "/name" else text.text):
        if len(piece) < 5:
            continue
        read = folded(piece)
        for hit in (
            *instructions.instruction_like(read, rules),
            *instructions.fake_turns(piece),
            *(hit for rule in praise for hit in list(rule.hits(read))[:1]),
        ):
            shown = piece if hit.check == "instruction.markup" and len(read) != len(piece) else read
            yield finding(item, text.path, shown, hit), text.text


def _parameter(item: Item, text: Text, server: str, others: Others, about: str) -> Iterator[Told]:
    for hit in names.lookalike(text.text, server, others):
        yield finding(item, text.path, text.text, hit), text.text
    if item.kind == "tool":
        for hit in parameters.sink_name(text.text, about):
            yield finding(item, text.path, text.text, hit), text.text


def _description(item: Item, text: Text, named: frozenset[str], about: str) -> Iterator[Told]:
    if named:
        for hit in names.mentions(text.text, named):
            yield finding(item, text.path, text.text, hit), text.text
    if len(text.text) >= 150:
        whole = folded(text.text)
        for hit in ranking.stuffing(whole):
            yield finding(item, text.path, whole, hit), text.text
    if about and "/properties/" in text.path:
        part = folded(text.text)
        for hit in parameters.sink_text(part, about):
            yield finding(item, text.path, part, hit), text.text


def _size(length: int) -> Severity:
    return "risky" if length > _CROWDING else "note"
