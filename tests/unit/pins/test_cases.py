"""The 34 cases of poisoned servers at the gate: what of each is offered, and what is held back."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from helpers.poisoned_servers import listed, scenario
from mcpzip_fakes.scenario import Scenario
from msgspec.structs import replace

from mcpzip.catalog import Catalog, Listed
from mcpzip.checks import check_items
from mcpzip.checks.others import Others
from mcpzip.config.reading import parse
from mcpzip.config.schema import Trust
from mcpzip.model import limits
from mcpzip.model.surface import Item
from mcpzip.pins.decisions import Decisions
from mcpzip.pins.review import Review
from mcpzip.pins.surface import Surface

PAGE = (Path(__file__).parents[3] / "docs" / "checks.md").read_text("utf-8")

Wanted = Literal["found", "passed", "limit"]
"""What is wanted of a case: that it is found or held, that it isn't flagged, nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """held: the keys of what is held back if a known server changes so. first: whether the same is held at
    the first sight of the server; None if it is honest then. said: whether checks find it at the first sight,
    though it is offered.
    """

    wanted: Wanted
    held: frozenset[str] = frozenset()
    first: bool | None = False
    said: bool = False


def held(*keys: str, first: bool | None = True) -> Case:
    return Case("found", frozenset(keys), first)


def said(*keys: str) -> Case:
    return Case("found", frozenset(keys), said=True)


ADD = "tool add"
CASES = {
    1: held(ADD),
    2: said(ADD),
    3: held(ADD),
    4: held(ADD),
    5: held(ADD),
    6: held(ADD),
    7: held(ADD),
    8: held(ADD),
    9: held("instructions "),
    10: held("prompt report", "resource memo://style", "template memo://{id}"),
    11: held(*(f"tool {name}" for name in ("add", "subtract", "multiply", "divide", "root"))),
    12: held(ADD, "tool subtract"),
    13: held("tool s\u0435nd_m\u0435ssage"),
    14: said("tool send_message"),
    15: said("tool check"),
    16: held(ADD, first=None),
    17: held(ADD, first=None),
    18: held("tool run", first=None),
    19: held("tool sync", "tool drop", first=None),
    20: Case("found", first=None),
    21: held(ADD, first=None),
    22: held(ADD, first=None),
    23: Case("found"),
    24: said("tool search", "tool mail"),
    25: said("every tool"),
    26: held(ADD, first=None),
    27: held("tool quicksilver", first=None),
    28: said(ADD),
    29: Case("passed", first=None),
    30: Case("passed"),
    31: Case("passed"),
    32: Case("limit"),
    33: Case("limit"),
    34: Case("limit"),
}


class Gate:
    """The gate in front of a server of a case, which is played beside the server slack."""

    def __init__(self, number: int, folder: Path, trust: Trust = "pin") -> None:
        self.told = scenario(number)
        if self.told.generate is not None:  # 10,000 take long, and so many are enough
            fewer = replace(self.told.generate, count=limits.CHECKED_ITEMS + 100)
            self.told = replace(self.told, generate=fewer)
        self.folder = folder
        servers = {name: {"command": "x"} for name in (self.told.name, "slack")}
        data = json.dumps({"mcpServers": servers, "trust": trust}).encode()
        self.config = parse(data, str(folder / "config.json"), {})
        self.offered = Catalog()
        self.decisions = Decisions(self.config, lambda: self.offered)
        self.lists(listed(Scenario.load("slack"), 1.0))

    def lists(self, update: Listed) -> frozenset[str]:
        """What is held of it, by key; ``every tool`` for all that the server has."""
        admitted = self.decisions.admit(update, self.offered.servers.get(update.server))
        self.offered = Catalog({**self.offered.servers, update.server: admitted.record})
        found = frozenset(self.decisions.held(update.server).holds)
        assert not found & {f"{item.kind} {item.name}" for item in Surface(admitted.record).items}
        return found if len(found) < 100 else frozenset(["every tool"])

    def first(self) -> frozenset[str]:
        return self.lists(listed(self.told, 2.0))

    def later(self) -> frozenset[str]:
        """What is held when the server, which was honest until then, becomes what the case says."""
        if not (self.told.changed_tools or any(tool.late for tool in self.told.tools)):
            now = self.told.tools[0].raw.encode()  # in each of them the tool that tells the time
            assert self.lists(Listed(self.told.name, (now,), 2.0)) == frozenset()
            return self.lists(listed(self.told, 3.0))
        assert self.first() == frozenset(), "it is honest at first"
        if self.told.name.startswith("26-"):
            Path(Review(self.config).place).write_bytes(b"{")
        return self.lists(listed(self.told, 3.0, changed=True))

    def findings(self) -> bool:
        """Whether a person who asks is told of something in what is offered."""
        record = self.offered.servers[self.told.name]
        others = Others.of(
            {
                name: [Item("tool", entry.tool, entry.raw) for entry in each.entries]
                for name, each in self.offered.servers.items()
            }
        )
        found = check_items(Surface(record).items, others, self.told.name)
        return any(one.severity != "note" for one in found)


def test_every_case_is_judged() -> None:
    assert list(CASES) == list(range(1, 35))


@pytest.mark.parametrize("number", CASES)
def test_what_is_held_at_the_first_sight(number: int, tmp_path: Path) -> None:
    case, gate = CASES[number], Gate(number, tmp_path)
    assert gate.first() == (case.held if case.first else frozenset())
    assert gate.findings() == case.said


@pytest.mark.parametrize("number", CASES)
def test_what_is_held_of_a_known_server(number: int, tmp_path: Path) -> None:
    case, gate = CASES[number], Gate(number, tmp_path)
    assert gate.later() == case.held
    if case.wanted != "found":
        assert case.held == frozenset()


@pytest.mark.parametrize("number", [20, 29])
def test_what_is_taken_over_is_noted_and_held_with_strict(number: int, tmp_path: Path) -> None:
    """Numbers are kept as they are written, so 1 and 1.0 are a change; order and spacing are none."""
    gate = Gate(number, tmp_path)
    gate.later()
    events = [event for _, event in Review(gate.config).events([gate.told.name])]
    (tmp_path / "strict").mkdir()
    (changed,) = Gate(number, tmp_path / "strict", "strict").later()
    assert changed in [event.item for event in events if event.what in ("added", "changed")]


@pytest.mark.parametrize("number", CASES)
def test_strict_offers_only_what_was_offered_first(number: int, tmp_path: Path) -> None:
    gate = Gate(number, tmp_path, "strict")
    gate.later()
    first = {tool.raw.encode() for tool in gate.told.tools if not tool.late}
    first = first if gate.told.changed_tools or number == 20 else {gate.told.tools[0].raw.encode()}
    assert {item.body for item in Surface(gate.offered.servers[gate.told.name]).items} <= first


def test_the_page_says_the_same() -> None:
    rows = {
        int(number): (first, later)
        for number, first, later in re.findall(
            r"^\| (\d+) \|[^|]+\|[^|]+\| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE
        )
    }
    assert rows.keys() == CASES.keys()
    for number, case in CASES.items():
        first = (
            "honest" if case.first is None else "held" if case.first else "said" if case.said else "offered"
        )
        assert rows[number][0] == first, number
        later = "held" if case.held else "noted" if case.first is None or number == 23 else "offered"
        assert rows[number][1] == later, number
