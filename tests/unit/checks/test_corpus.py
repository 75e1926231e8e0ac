"""The checks on attacks and on honest texts that look like attacks (tests/data/checks)."""

import re
from collections import Counter
from pathlib import Path

import pytest
from helpers.corpus import Sample, attacks, benign

from mcpzip.checks.finding import MEANINGS
from mcpzip.checks.languages import LANGUAGES

PAGE = (Path(__file__).parents[3] / "docs" / "checks.md").read_text("utf-8")

ATTACKS, HONEST = attacks(), benign()

MISSED = {
    "near-copy-parameter": "the original's parameters are not known here, so that one more isn't noticed",
    "spelled-out": "spaces between all letters",
    "leet": "digits for letters",
    "rot13": "an alphabet that is moved by 13 letters",
    "polish": "a language without phrases of its own here",
    "hex-spaced": "hexadecimal digits with spaces between the bytes",
    "typosquat-double": "a plural s at the end, which names of honest servers have too",
}
"""The attacks that no check finds; docs/checks.md lists them too."""

MISSED_BY = {
    "instruction.override": {"leet", "polish", "spelled-out"},
    "instruction.secrecy": {"polish"},
    "instruction.exfiltration": {"examples-order", "param-name-sentence"},
    "instruction.consent": {"chat-template"},
    "instruction.order": {"output-schema", "param-description-3"},
    "encoded.payload": {"hex-spaced", "rot13"},
    "names.typosquat": {"typosquat-double"},
    "names.near-copy": {"near-copy-parameter"},
}
"""By check, the attacks that it should find and doesn't. Most of them are found by another check."""

WITHOUT_ATTACKS = {"names.same-server", "question.secret"}
"""The first is a note only; the other is for questions during calls (said.jsonl)."""

RISKY = {
    "quotes an attack-13",
    "quotes an attack-14",
    "quotes an attack-15",
    "quotes an attack-16",
    "says when to call it-17",
    "talks about keys-6",
}
"""The honest texts about which something is risky, as docs/checks.md says."""


def recall(samples: list[Sample]) -> float:
    return sum(int(sample.detected) for sample in samples) / len(samples)


def test_the_corpus_is_as_large_as_the_docs_say() -> None:
    assert len(ATTACKS) == 192
    assert len(HONEST) == 209
    for samples in (ATTACKS, HONEST):
        assert len({sample.id for sample in samples}) == len(samples)


def test_nine_of_ten_attacks_are_found() -> None:
    assert recall(ATTACKS) >= 0.9
    for part in ("a", "b", "c"):
        assert recall([sample for sample in ATTACKS if sample.part == part]) >= 0.9


def test_the_attacks_that_are_missed_are_known() -> None:
    assert {sample.id for sample in ATTACKS if not sample.detected} == set(MISSED)


def test_every_check_of_lists_has_attacks() -> None:
    assert {check for sample in ATTACKS for check in sample.checks} == set(MEANINGS) - WITHOUT_ATTACKS


def test_the_attacks_that_a_check_misses_are_known() -> None:
    missed: dict[str, set[str]] = {}
    for sample in ATTACKS:
        for check in set(sample.checks) - sample.found_by.keys():
            missed.setdefault(check, set()).add(sample.id)
    assert missed == MISSED_BY


def test_most_attacks_of_each_check_are_found() -> None:
    every = Counter(check for sample in ATTACKS for check in sample.checks)
    found = Counter(check for sample in ATTACKS for check in sample.found_by)
    assert {check for check in every if found[check] < 0.8 * every[check]} == set()


@pytest.mark.parametrize("sample", HONEST, ids=[sample.id for sample in HONEST])
def test_honest_texts_are_never_hard(sample: Sample) -> None:
    assert [one for one in sample.findings() if one.severity == "hard"] == []


def test_the_honest_texts_that_are_risky_are_known() -> None:
    risky = {sample.id for sample in HONEST if any(one.severity == "risky" for one in sample.findings())}
    assert risky == RISKY


SCRIPTS = ("emoji", "right to left", "CJK", "Indic and others", "German etc.", "encoded", "praise")


@pytest.mark.parametrize(
    "sample", [one for one in HONEST if one.id.rpartition("-")[0] in SCRIPTS], ids=lambda one: one.id
)
def test_other_scripts_and_emoji_are_no_finding(sample: Sample) -> None:
    assert sample.findings() == []


def test_a_quoted_attack_is_a_note_if_the_text_speaks_of_attacks() -> None:
    quoting = [one for one in HONEST if one.id.startswith("quotes an attack") and one.id not in RISKY]
    found = [one.severity for sample in quoting for one in sample.findings()]
    assert found
    assert set(found) == {"note"}


def test_the_page_has_every_check_and_every_language() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|[^|]+\|[^|]+\|[^|]+\|$", PAGE.replace("\\|", ""), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z-]+\.[a-z-]+)`", row)} == set(MEANINGS)
    assert [language for language in LANGUAGES if language not in PAGE] == []


def test_the_page_has_the_figures() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+\.[a-z-]+)` \| (\d+) \| (\d+) \| (\d+|–) \| ([^|]*) \|$", PAGE, re.MULTILINE
    )
    every = Counter(check for sample in ATTACKS for check in sample.checks)
    found = Counter(check for sample in ATTACKS for check in sample.found_by)
    hard = Counter(
        check for sample in ATTACKS for check, severity in sample.found_by.items() if severity == "hard"
    )
    assert rows == [
        (
            check,
            str(every[check]),
            str(found[check]),
            str(hard[check] or "–"),
            ", ".join(f"*{name}*" for name in sorted(MISSED_BY.get(check, ()))),
        )
        for check in MEANINGS
        if every[check]
    ]
    whole = sum(sample.detected for sample in ATTACKS)
    serious = sum("hard" in sample.found_by.values() for sample in ATTACKS)
    share = f"{whole} ({recall(ATTACKS):.2f}) | {serious} ({serious / len(ATTACKS):.2f})"
    assert f"| all attacks | {len(ATTACKS)} | {share} |" in PAGE
