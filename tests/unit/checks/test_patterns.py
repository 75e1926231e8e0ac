"""No pattern can take longer than in proportion to the text: what makes one slow is not there.

A server chooses the text, so that a pattern whose work grows with the square of its length would let it stop
mcpzip. `python -m bench.checks --adversarial` measures it.
"""

import importlib
import pkgutil
import re
import string
from collections.abc import Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpzip.checks
from mcpzip.checks.instructions import RULES
from mcpzip.checks.ranking import PRAISE
from mcpzip.checks.rules import rule
from mcpzip.checks.texts import folded

LONGEST_GAP = 300
ENDED = {"_NAME", "_HEX"}
"""Patterns in which something follows an unbounded repetition: it can't begin again inside of what it
skipped."""


def patterns() -> dict[str, re.Pattern[str]]:
    found = {}
    for module in pkgutil.iter_modules(mcpzip.checks.__path__):
        for name, value in vars(importlib.import_module(f"mcpzip.checks.{module.name}")).items():
            for part in value if isinstance(value, tuple) else [value]:
                part = part[0] if isinstance(part, tuple) and part else part
                if isinstance(part, re.Pattern):
                    found[f"{module.name}.{name}: {part.pattern[:40]}"] = part
    for number, one in enumerate((*RULES.rules, *PRAISE.rules)):
        for at, part in enumerate(one.parts):
            found[f"rule {number}.{at} {one.check}: {part[:40]}"] = re.compile(part)
    return found


def repeats(parsed: object, inside: int = 1) -> Iterator[tuple[int, int, bool]]:
    """Each repetition: how often it can be tried at one place, the same with those around it, whether what it
    repeats is a single character."""
    for code, argument in parsed:  # type: ignore[attr-defined]
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            _, most, body = argument
            single = len(body) == 1 and body[0][0] in (op.IN, op.LITERAL, op.ANY, op.NOT_LITERAL)
            yield int(most), inside, single
            yield from repeats(body, inside * (1 if most == 1 else min(int(most), LONGEST_GAP + 1)))
        elif code is op.SUBPATTERN:
            yield from repeats(argument[3], inside)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from repeats(branch, inside)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from repeats(argument[1], inside)


@pytest.mark.parametrize("name", patterns())
def test_a_pattern_has_no_unbounded_gap(name: str) -> None:
    pattern = patterns()[name]
    parsed = parser.parse(pattern.pattern, pattern.flags)
    for most, inside, single in repeats(parsed):
        if most > LONGEST_GAP:
            assert single, "an unbounded repetition of more than one character"
            assert inside == 1, "a repetition in a repetition"


@pytest.mark.parametrize("name", patterns())
def test_nothing_can_fail_after_an_unbounded_repetition(name: str) -> None:
    """A row of line ends, searched for a row with something behind it, took a minute."""
    pattern = patterns()[name]
    if name.partition(":")[0].rpartition(".")[2] not in ENDED:
        assert list(continued(parser.parse(pattern.pattern, pattern.flags))) == []


def continued(parsed: object, more: bool = False) -> Iterator[object]:
    """The unbounded repetitions behind which something has to follow."""
    items = list(parsed)  # type: ignore[call-overload]
    for at, (code, argument) in enumerate(items):
        rest = more or any(
            after not in (op.MAX_REPEAT, op.MIN_REPEAT) or value[0] > 0 for after, value in items[at + 1 :]
        )
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            if int(argument[1]) > LONGEST_GAP and rest:
                yield argument
            yield from continued(argument[2], rest)
        elif code is op.SUBPATTERN:
            yield from continued(argument[3], rest)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from continued(branch, rest)


def test_every_rule_can_be_skipped_only_for_texts_that_it_does_not_match() -> None:
    for one in (*RULES.rules, *PRAISE.rules):
        assert one.needs
        assert all(word == word.lower() for word in (*one.needs, *one.also))


words = st.sampled_from(
    [word for one in RULES.rules for word in (*one.needs, *one.also)]
    + [
        "the user",
        "do not",
        "must",
        "all",
        "previous",
        "instructions",
        "https://x.y",
        "a@b.c",
        ".",
        "parameter",
    ]
)


@given(st.lists(words, max_size=12).map(" ".join))
def test_no_match_is_skipped(text: str) -> None:
    wanted = RULES.wanted(folded(text))
    for one in RULES.rules:
        if one not in wanted:
            assert list(one.hits(folded(text))) == []


@given(st.lists(st.sampled_from(["read ", "key ", "send ", "x" * 30, ". "]), max_size=30).map("".join))
def test_the_parts_of_a_phrase_follow_each_other(text: str) -> None:
    one = rule("size.large", "note", "read", "key", "send", needs=("read",), within=40)
    for hit in one.hits(text):
        part = text[hit.start : hit.end]
        assert part.startswith("read")
        assert part.endswith("send")
        assert "key" in part
        assert len(part) <= 2 * 40 + len("send")


def test_letters_that_look_like_others_are_folded() -> None:
    assert folded("Ign\u043ere  ALL\n\u200bthings") == "ignore all things"
    assert folded("игнорируй") == "игнорируй"
    assert folded(string.ascii_letters).isascii()
