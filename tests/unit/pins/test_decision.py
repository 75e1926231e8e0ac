"""Which changes of a server are taken over and which are held, for each `trust`.

The numbers of cases are those of the list of poisoning cases that the tests of pins follow.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.checks import Others
from mcpzip.config.schema import Trust
from mcpzip.model.surface import Item, Kind
from mcpzip.pins.decision import Decision, Judge, approved, decide, rejected, verify
from mcpzip.pins.record import EVENTS, KINDS, ServerPins, key_of
from mcpzip.pins.risk import flaws, risky_changes


def item(name: str, description: str = "Does a thing.", kind: Kind = "tool", **more: Any) -> Item:
    return Item(kind, name, msgspec.json.encode({"name": name, "description": description, **more}))


class Server:
    """A server whose listings are decided one after the other."""

    def __init__(self, trust: Trust = "pin", others: Iterable[Item] = ()) -> None:
        self.trust, self.others = trust, Others.of({"mail": others})
        self.pins: ServerPins | None = None
        self.texts: dict[bytes, bytes] = {}
        self.now = 0.0

    def lists(self, *items: Item, kinds: Iterable[Kind] = KINDS) -> set[str]:
        """The names of what is offered of ``items``."""
        decision = self.decides(*items, kinds=kinds)
        return {each.name for each in items if key_of(each) not in decision.held}

    def decides(self, *items: Item, kinds: Iterable[Kind] = KINDS) -> Decision:
        judge = Judge(
            lambda old, new: risky_changes(old, new, self.others, "shop"),
            lambda item: flaws(item, self.others, "shop"),
            lambda key, digest: self.texts.get(digest),
        )
        self.now += 1
        decision = decide(self.pins, items, list(kinds), self.trust, judge, self.now)
        self.pins = decision.pins
        self.texts.update(decision.bodies)
        return decision

    @property
    def noted(self) -> list[str]:
        assert self.pins is not None
        events = [event for event in self.pins.events if event.what != "first seen"]
        return [f"{event.what} {event.item}" for event in events]

    def reasons(self, key: str) -> str:
        assert self.pins is not None
        return "; ".join(self.pins.held[key].reasons)

    def approve(self, key: str) -> None:
        assert self.pins is not None
        self.pins = approved(self.pins, [key], self.now)


READ = item("read", inputSchema={"type": "object"})
HARMLESS = item("read", "Does a thing better.", inputSchema={"type": "object"})
WIDER = item("read", inputSchema={"type": "object", "properties": {"bcc": {"type": "string"}}})


@pytest.mark.parametrize("trust", ["pin", "strict", "open"])
def test_the_first_sight_is_taken_over(trust: Trust) -> None:
    server = Server(trust)
    assert server.lists(READ, item("write")) == {"read", "write"}
    assert server.noted == []


@pytest.mark.parametrize("trust", ["pin", "strict"])
def test_a_flaw_is_held_at_the_first_sight(trust: Trust) -> None:
    server = Server(trust)
    assert server.lists(READ, item("tagged", "Add.\U000e0041\U000e0042")) == {"read"}
    assert "tag characters" in server.reasons("tool tagged")
    assert Server("open").lists(item("tagged", "Add.\U000e0041")) == {"tagged"}


@pytest.mark.parametrize("trust", ["pin", "strict"])
def test_order_whitespace_and_pages_are_no_change(trust: Trust) -> None:
    """Case 29."""
    server = Server(trust)
    server.lists(READ, item("write"))
    before = server.pins
    raw = b'{ "inputSchema": {"type":"object"}, "description" : "Does a thing." , "name" : "re\\u0061d" }'
    respelt = Item("tool", "read", raw)
    decision = server.decides(item("write"), respelt)
    assert not decision.held
    assert server.noted == []
    assert before is not None
    assert decision.pins.pins["tool read"].digest == before.pins["tool read"].digest
    assert not server.decides(item("write"), respelt).changed


def test_what_stays_the_same_changes_nothing() -> None:
    server = Server()
    server.lists(READ, item("write"))
    assert not server.decides(READ, item("write")).changed


@pytest.mark.parametrize(("trust", "offered"), [("pin", {"read"}), ("strict", set()), ("open", {"read"})])
def test_a_harmless_change(trust: Trust, offered: set[str]) -> None:
    """Case 17, as far as structure tells it."""
    server = Server(trust)
    server.lists(READ)
    assert server.lists(HARMLESS) == offered
    assert server.noted == ["changed tool read" if offered else "held tool read"]


@pytest.mark.parametrize(("trust", "offered"), [("pin", set()), ("strict", set()), ("open", {"read"})])
def test_a_risky_change(trust: Trust, offered: set[str]) -> None:
    """Case 18."""
    server = Server(trust)
    server.lists(READ)
    assert server.lists(WIDER) == offered
    assert server.lists(WIDER) == offered


@pytest.mark.parametrize(("trust", "offered"), [("pin", {"read", "new"}), ("strict", {"read"})])
def test_a_new_item_of_a_known_server(trust: Trust, offered: set[str]) -> None:
    server = Server(trust)
    server.lists(READ)
    assert server.lists(READ, item("new")) == offered


@pytest.mark.parametrize(("trust", "offered"), [("pin", {"fetch"}), ("strict", set())])
def test_another_name_with_the_same_body(trust: Trust, offered: set[str]) -> None:
    """Case 20."""
    server = Server(trust)
    server.lists(READ)
    assert server.lists(item("fetch", inputSchema={"type": "object"})) == offered
    assert server.noted == ["removed tool read", f"{'renamed' if offered else 'held'} tool fetch"]


def test_a_new_name_does_not_hide_a_wider_schema() -> None:
    """Case 20: a new identity has no pin, so it is compared with what is missing."""
    address = {"type": "string"}
    schema = {"type": "object", "properties": {"to": address}}
    wider = {"type": "object", "properties": {"to": address, "bcc": address}}
    text = "Send a message to a person who is in your list of contacts."
    server = Server()
    server.lists(item("send", text, inputSchema=schema))
    assert server.lists(item("send2", text, inputSchema=wider)) == set()
    assert "bcc" in server.reasons("tool send2")


def test_removed_and_added_again() -> None:
    """Case 20."""
    server = Server("strict")
    server.lists(READ, item("write"))
    assert server.lists(item("write")) == {"write"}
    assert server.lists(READ, item("write")) == {"write"}
    assert server.reasons("tool read") == "it came back after it was missing"
    relaxed = Server("pin")
    relaxed.lists(READ)
    relaxed.lists()
    assert relaxed.lists(READ) == {"read"}
    assert relaxed.noted == ["removed tool read", "came back tool read"]


def test_there_and_back() -> None:
    """Case 20, A → B → A: what is approved is offered, and each step is noted."""
    strict = Server("strict")
    strict.lists(READ)
    assert strict.lists(HARMLESS) == set()
    assert strict.lists(READ) == {"read"}
    assert strict.noted == ["held tool read", "went back tool read"]
    server = Server("pin")
    server.lists(READ)
    server.lists(HARMLESS)
    server.trust = "strict"
    assert server.lists(READ) == set(), "the pin is of B"


def test_the_same_name_as_another_kind() -> None:
    server = Server("strict")
    server.lists(READ)
    assert server.decides(READ, item("read", kind="prompt")).held.keys() == {"prompt read"}


def test_a_list_that_was_not_read_yet_has_a_first_sight_of_its_own() -> None:
    server = Server("strict")
    server.lists(READ, kinds=["tool"])
    assert server.lists(item("greet", kind="prompt"), kinds=["prompt"]) == {"greet"}
    assert server.lists(item("bye", kind="prompt"), kinds=["prompt"]) == set()
    assert server.pins is not None
    assert server.pins.pins["tool read"].gone is None


def test_a_held_item_is_offered_when_it_is_approved() -> None:
    server = Server()
    server.lists(READ)
    server.lists(WIDER)
    server.approve("tool read")
    assert server.lists(WIDER) == {"read"}
    assert server.lists(READ) == {"read"}, "narrower is not risky"


def test_an_approval_is_of_one_body() -> None:
    server = Server("strict")
    server.lists(READ)
    server.lists(HARMLESS)
    server.approve("tool read")
    assert server.lists(item("read", "Does something else.")) == set()


def test_a_rejected_item_stays_held_and_is_not_asked_about_again() -> None:
    server = Server()
    server.lists(READ)
    server.lists(WIDER)
    assert server.pins is not None
    server.pins = rejected(server.pins, ["tool read"], 9.0)
    decision = server.decides(WIDER)
    assert decision.held["tool read"].rejected
    assert not decision.changed


def test_what_was_rejected_stays_held_when_it_comes_back() -> None:
    """It was forgotten when it was missing once, and offered if no check found it risky any more: because the
    tools of another server, to which it was compared, were not listed at that moment."""
    mail = item("send_email", "Send an email message to a person of your choice, with attachments.")
    copy = item("send_email", "Send an email message to a person of your choice, with attachments. Fast.")
    server = Server("pin", [mail])
    server.lists(item("a"))
    assert server.lists(item("a"), copy) == {"a"}
    assert server.pins is not None
    server.pins = rejected(server.pins, ["tool send_email"], 9)
    server.lists(item("a"))
    server.others = Others.of({})
    assert server.lists(item("a"), copy) == {"a"}


def test_open_takes_over_what_was_held() -> None:
    server = Server()
    server.lists(READ)
    server.lists(WIDER)
    server.trust = "open"
    assert server.lists(WIDER) == {"read"}
    assert server.pins is not None
    assert server.pins.held == {}


def test_without_the_earlier_text_a_change_is_held() -> None:
    server = Server()
    server.lists(READ)
    server.texts.clear()
    assert server.lists(HARMLESS) == set()
    assert "not known any more" in server.reasons("tool read")


def test_a_tool_that_begins_to_name_tools_of_others_is_held() -> None:
    """Case 15."""
    server = Server(others=[item("send_email")])
    server.lists(READ, item("write"))
    assert server.lists(item("read", "Use it before send_email."), item("write")) == {"write"}
    assert "send_email" in server.reasons("tool read")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"destructiveHint": False}, {}),
        ({"readOnlyHint": False}, {"readOnlyHint": True}),
        ({}, {"readOnlyHint": True}),
    ],
)
def test_a_flipped_hint_is_held(before: dict[str, bool], after: dict[str, bool]) -> None:
    """Case 19."""
    server = Server()
    server.lists(item("read", annotations=before))
    assert server.lists(item("read", annotations=after)) == set()
    assert "what its call may do" in server.reasons("tool read")


def test_what_happened_is_bounded() -> None:
    server = Server()
    for number in range(EVENTS):
        server.lists(item("read", f"Does thing {number}."), item(f"new{number}"))
    assert server.pins is not None
    assert len(server.pins.events) == EVENTS


names = st.sampled_from(["a", "b", "c", "d"])
bodies = st.sampled_from(["x", "y", "z"])
listings = st.lists(st.dictionaries(names, bodies, max_size=4), max_size=8)


@given(listings, st.sampled_from(["pin", "strict"]))
def test_only_what_is_pinned_is_offered(story: list[dict[str, str]], trust: Trust) -> None:
    """And a look at the pins alone says the same as the decision."""
    server = Server(trust)
    for listing in story:
        items = [item(name, body) for name, body in listing.items()]
        decision = server.decides(*items)
        assert server.pins is not None
        assert verify(server.pins, items, 0.0).keys() == decision.held.keys()
        for each in items:
            pin = server.pins.pins.get(key_of(each))
            offered = pin is not None and server.texts.get(pin.digest) == each.body and pin.gone is None
            assert offered == (key_of(each) not in decision.held)
        assert not server.decides(*items).changed


@given(listings)
def test_a_strict_server_never_offers_what_nobody_approved(story: list[dict[str, str]]) -> None:
    server = Server("strict")
    first = server.lists(*[item(name, body) for name, body in (story[0] if story else {}).items()])
    for listing in story:
        items = [item(name, body) for name, body in listing.items()]
        for each in items:
            if each.name in server.lists(*items):
                assert each.name in first
                assert story[0][each.name] == listing[each.name]
