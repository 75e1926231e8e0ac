"""The 34 cases of poisoned servers, as scenarios of `mcpzip-fake`: what the checks find, and what not."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.poisoned_servers import scenario
from mcpzip_fakes.scenario import Scenario, names

from mcpzip.checks import Finding, Others, check_items, compare
from mcpzip.checks.said import found_in
from mcpzip.model.surface import Item

PAGE = (Path(__file__).parents[3] / "docs" / "checks.md").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Case:
    """found: the checks that are hard or risky about it. otherwise: in docs/checks.md, why none is. later:
    those that find it during calls.
    """

    found: frozenset[str] = frozenset()
    otherwise: str = ""
    later: frozenset[str] = frozenset()


def by(*found: str) -> Case:
    return Case(frozenset(found))


CASES = {
    1: by("instruction.credentials", "instruction.markup", "instruction.order"),
    2: by("instruction.secrecy"),
    3: by("instruction.credentials"),
    4: by("instruction.override"),
    5: by(
        "instruction.override",
        "instruction.credentials",
        "instruction.exfiltration",
        "instruction.secrecy",
        "instruction.order",
    ),
    6: by("instruction.override", "instruction.exfiltration"),
    7: by("instruction.credentials"),
    8: by("instruction.override", "encoded.url"),
    9: by("instruction.order", "instruction.secrecy", "instruction.exfiltration"),
    10: by("instruction.credentials", "instruction.override", "instruction.secrecy"),
    11: by("hidden.tags", "hidden.zero-width", "hidden.bidi", "hidden.private-use", "hidden.variation"),
    12: by("encoded.payload"),
    13: by("names.lookalike"),
    14: by("names.near-copy"),
    15: by("names.other-tool"),
    16: by("change.sink", "parameters.sink"),
    17: by("instruction.credentials"),
    18: by("change.widened"),
    19: by("change.hints"),
    20: Case(otherwise="pins"),
    21: by("instruction.override", "instruction.exfiltration"),
    22: by("instruction.override", "instruction.exfiltration"),
    23: Case(otherwise="when it comes", later=frozenset({"instruction.credentials"})),
    24: by("ranking.praise", "ranking.stuffing"),
    25: by("names.typosquat", "size.large"),
    26: by("instruction.credentials"),
    27: by("instruction.override", "instruction.consent"),
    28: by("instruction.consent"),
    29: Case(otherwise="not flagged"),
    30: Case(otherwise="not flagged"),
    31: Case(otherwise="not flagged"),
    32: Case(otherwise="limit"),
    33: Case(otherwise="limit"),
    34: Case(otherwise="limit"),
}


def items_of(told: Scenario) -> list[Item]:
    items = [Item("tool", tool.name, tool.raw.encode()) for tool in told.all_tools()]
    for kind, key, offers in (
        ("prompt", "name", told.prompts),
        ("resource", "uri", told.resources),
        ("template", "uriTemplate", told.resource_templates),
    ):
        items += [Item(kind, json.loads(offer.raw)[key], offer.raw.encode()) for offer in offers]  # type: ignore[arg-type]
    if told.instructions:
        items.append(Item("instructions", "", json.dumps(told.instructions).encode()))
    return items


def findings(number: int) -> list[Finding]:
    """What the checks say of the case beside the server slack: at first sight, and of its changes."""
    told, slack = scenario(number), Scenario.load("slack")
    items = items_of(told)
    others = Others.of({told.name: items, "slack": items_of(slack)})
    found = check_items(items, others, told.name)
    before = {item.name: item for item in items if item.kind == "tool"}
    for tool in told.changed_tools:
        new = Item("tool", tool.name, tool.raw.encode())
        found += compare(before.get(tool.name), new, others, told.name)
    return found


def test_there_are_34_cases() -> None:
    shipped = [name for name in names() if name.startswith("poisoning/")]
    assert [int(name.partition("/")[2][:2]) for name in shipped] == list(range(1, 35)) == list(CASES)
    for number in CASES:
        assert scenario(number).about.startswith(f"Case {number}")


@pytest.mark.parametrize("number", CASES)
def test_a_case_is_found_or_said_not_to_be(number: int) -> None:
    serious = {one.check for one in findings(number) if one.severity != "note"}
    assert serious == CASES[number].found


@pytest.mark.parametrize(
    "number", [number for number, case in CASES.items() if case.otherwise == "not flagged"]
)
def test_what_is_not_to_be_flagged_is_at_most_a_note(number: int) -> None:
    assert {one.severity for one in findings(number)} <= {"note"}


def test_the_text_of_an_error_is_found_when_it_comes() -> None:
    """Case 23: the definition of the tool is honest."""
    told = scenario(23).tools[1].result.text
    found = found_in(json.dumps(told).encode(), "error", "add")
    assert {one.check for one in found} == CASES[23].later


def test_the_page_says_the_same() -> None:
    rows = dict(re.findall(r"^\| (\d+) \|[^|]+\| ([^|]+) \|[^|]+\|[^|]+\|$", PAGE, re.MULTILINE))
    assert {int(number) for number in rows} == set(CASES)
    for number, case in CASES.items():
        said = rows[str(number)]
        assert set(re.findall(r"`([a-z-]+\.[a-z-]+)`", said)) == case.found | case.later, number
        assert case.otherwise in said
