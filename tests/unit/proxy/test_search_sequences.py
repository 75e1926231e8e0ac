"""Which words are learned of a call: those of the searches that led to it, the ones that failed too."""

import pytest
from helpers.search_tools import searcher, tool

from mcpzip.proxy import search_sequences as module
from mcpzip.proxy.search_sequences import FAILED, SEARCHES, TOOLS, WITHIN, SearchSequences
from mcpzip.search import Searcher
from mcpzip.search.semantic import local_table

PARK = tool("maps", "parking_facilities", "Find parking facilities near a place")
CAFES = tool("maps", "nearby_cafes", "Find cafes near a place")
PAY = tool("bank", "pay_invoice", "Pay an invoice")
OTHERS = [tool("maps", f"find_{name}", f"Find {name} near a place") for name in ("hotels", "banks", "shops")]
KNOWN = searcher(PARK, CAFES, PAY, *OTHERS, table=local_table())
WORDS_ALONE = searcher(PARK, CAFES, PAY, *OTHERS)


class Agent:
    """Searches and calls, at the time ``at``."""

    def __init__(self, known: Searcher = KNOWN) -> None:
        self.at, self.known = 0.0, known
        self.sequences = SearchSequences(lambda: self.at)

    def search(self, query: str, limit: int = 2, owner: object = "agent") -> None:
        self.sequences.searched(owner, query, self.known.search(query, limit))

    def call(self, name: str, owner: object = "agent") -> set[str]:
        return set(self.weights(name, owner))

    def weights(self, name: str, owner: object = "agent") -> dict[str, float]:
        return self.sequences.called(owner, name, self.known)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_the_words_of_a_search_belong_to_the_tool_that_is_called(agent: Agent) -> None:
    agent.search("places near here to park")
    assert agent.call("bank__pay_invoice") == set()  # it wasn't found
    assert agent.call("maps__parking_facilities") == {"place", "near", "park"}
    assert agent.call("maps__parking_facilities") == set()  # again: that says nothing new


def test_the_words_of_the_search_that_failed_belong_to_it_too(agent: Agent) -> None:
    agent.search("somewhere to leave my car", 0)
    agent.search("a place to park my car")
    failed = {"somewh": FAILED, "leav": FAILED, "car": FAILED}
    assert agent.weights("maps__parking_facilities") == {**failed, "place": 1, "park": 1}
    agent.search("leave the car somewhere", 0)
    agent.search("parking facilities near a place, please")
    assert {"leav", "car", "park"} <= agent.call("maps__parking_facilities")


def test_a_search_for_something_else_is_no_failed_one(agent: Agent) -> None:
    agent.search("pay this invoice at once", 1)
    agent.search("a place to park my car")
    assert agent.call("maps__parking_facilities") == {"place", "park", "car"}
    assert agent.call("bank__pay_invoice") == {"pay", "invoic", "onc"}


def test_a_search_that_led_to_a_call_is_no_failed_one(agent: Agent) -> None:
    agent.search("a bank where I could park", 3)
    assert agent.call("maps__find_banks") == {"bank", "park"}
    agent.search("a place to park my car")
    assert agent.call("maps__parking_facilities") == {"place", "park", "car"}


def test_words_alone_tell_what_is_related_by_a_word_in_common() -> None:
    agent = Agent(WORDS_ALONE)
    agent.search("invoice", 0)
    agent.search("near park", 0)
    agent.search("place to park")
    assert agent.call("maps__parking_facilities") == {"near", "place", "park"}


def test_a_search_by_name_teaches_the_words_of_the_one_before_only(agent: Agent) -> None:
    agent.search("parking facilities")
    assert agent.call("maps__parking_facilities") == set()
    agent.search("leave my car near a place", 0)
    agent.search("maps__parking_facilities")
    assert agent.call("maps__parking_facilities") == {"leav", "car", "near", "place"}


def test_it_is_forgotten_after_some_time_and_some_searches(agent: Agent) -> None:
    agent.search("a place to park my car")
    agent.at = WITHIN + 1
    assert agent.call("maps__parking_facilities") == set()
    agent.search("a place to park my car")
    for _ in range(SEARCHES):
        agent.search("pay this invoice", 1)
    assert agent.call("maps__parking_facilities") == set()


def test_few_tools_learn_from_one_search(agent: Agent) -> None:
    agent.search("find what is near a place", 5)
    names = [entry.name for entry in (PARK, CAFES, *OTHERS)]
    assert sum(bool(agent.call(name)) for name in names) == TOOLS


def test_everybody_has_searches_of_their_own(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENTS", 2)
    agent.search("a place to park my car", owner="one")
    agent.search("pay this invoice", owner="two")
    assert agent.call("maps__parking_facilities", "two") == set()
    assert agent.call("maps__parking_facilities", "one") != set()
    agent.sequences.remove("two")
    assert agent.call("bank__pay_invoice", "two") == set()
    agent.search("a place to park my car", owner="one")
    for owner in ("three", "four"):
        agent.search("pay this invoice", owner=owner)
    assert agent.call("maps__parking_facilities", "one") == set()


def test_of_several_needs_a_tool_learns_the_words_of_its_own() -> None:
    agent = Agent()
    agent.search("find a place to park my car and pay the last invoice of my doctor", 6)
    assert agent.call("bank__pay_invoice") == {"pay", "last", "invoic", "doctor"}
    assert agent.call("maps__parking_facilities") == {"find", "place", "park", "car"}


def test_a_document_is_no_query(agent: Agent) -> None:
    agent.search("a place to park my car " * 100)
    assert agent.call("maps__parking_facilities") == set()
