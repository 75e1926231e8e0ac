"""Answering a question: who is asked elsewhere and who isn't, and what moves tools beside their texts."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.search_tools import searcher, tool

from mcpzip.catalog import Catalog, Failed, ServerRecord, merge
from mcpzip.config import Config, parse
from mcpzip.model.entry import Entry
from mcpzip.model.principal import Principal
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.tool_usage import UseCount, load, save, usage_path
from mcpzip.proxy.usage_store import UsageStore
from mcpzip.search import Filters, Results, Searcher
from mcpzip.search.tiers import LLM, TierAbsence, TierAnswer

SEND = tool("slack", "send_message", "Send a message to a channel")
LIST = tool("slack", "list_channels", "List the channels")
PAY = tool("bank", "pay_invoice", "Pay an invoice")
Json = dict[str, Any]
ENTRIES = (SEND, LIST, PAY)
CATALOG = Catalog(
    {
        "slack": ServerRecord("slack", (LIST, SEND), fetched_at=1.0),
        "bank": ServerRecord("bank", (PAY,), fetched_at=1.0),
    }
)


class Elsewhere:
    """Records what it was asked, and says what it was told to."""

    def __init__(self, *answers: TierAnswer, absent: Sequence[TierAbsence] = ()) -> None:
        self.answers, self.absent = list(answers), list(absent)
        self.indexed: list[str] = []
        self.asked: list[tuple[str, list[str], int]] = []
        self.ended = False

    def index(self, entries: Sequence[Entry], version: str) -> None:
        self.indexed.append(version)

    async def ask(
        self, query: str, shortlist: Sequence[Entry], limit: int
    ) -> tuple[list[TierAnswer], list[TierAbsence]]:
        self.asked.append((query, [entry.name for entry in shortlist], limit))
        return self.answers, self.absent

    async def aclose(self) -> None:
        self.ended = True


def made() -> Searcher:
    return searcher(*ENTRIES, *ADMIN_TOOLS)


async def found(finder: ToolSearch, query: str, limit: int = 5, filters: Filters | None = None) -> Results:
    return await finder.search(SearchRequest(query, limit, filters or Filters()), made(), CATALOG)


def names(results: Results) -> list[str]:
    return [hit.entry.name for hit in results.hits]


# --- elsewhere ----------------------------------------------------------------------------------------------


async def test_who_is_asked_elsewhere_gets_the_best_of_here_and_the_words_without_signs() -> None:
    elsewhere = Elsewhere(TierAnswer(LLM, "gemini", {"slack__list_channels": 1.0}))
    results = await found(ToolSearch({}, None, elsewhere), "message to channel -invoice", 2)
    assert elsewhere.asked == [("message to channel", ["slack__send_message", "slack__list_channels"], 2)]
    assert names(results)[0] == "slack__list_channels"
    assert results.hits[0].tier == LLM
    assert "llm (gemini)" in results.tiers


async def test_who_is_absent_elsewhere_is_in_the_results() -> None:
    absence = TierAbsence(LLM, "gemini", "429")
    results = await found(ToolSearch({}, None, Elsewhere(absent=[absence])), "send message to somebody")
    assert results.absent == (absence,)
    assert names(results)[0] == "slack__send_message"


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("slack__send_message", Filters()),
        ("message", Filters(server="nobody")),
        ("server:nobody message", Filters()),
        ("server:slack", Filters()),
    ],
)
async def test_where_there_is_nothing_to_choose_nobody_is_asked(query: str, filters: Filters) -> None:
    elsewhere = Elsewhere()
    await found(ToolSearch({}, None, elsewhere), query, 5, filters)
    assert elsewhere.asked == []


@pytest.mark.parametrize(
    ("query", "searches"),
    [("slack__send_message", 1), ("server:slack", 1), ("server:nobody message", 1), ("message", 2)],
)
async def test_the_catalog_is_searched_no_more_often_than_needed(
    query: str, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second time only to rank with the answers of remote tiers."""
    limits = []
    search = Searcher.search

    def counted(self: Searcher, query: str, limit: int, *others: Any) -> Results:
        limits.append(limit)
        return search(self, query, limit, *others)

    monkeypatch.setattr(Searcher, "search", counted)
    await found(ToolSearch({}, None, Elsewhere()), query)
    assert len(limits) == searches


async def test_elsewhere_is_told_of_each_catalog_once() -> None:
    elsewhere = Elsewhere()
    finder = ToolSearch({}, None, elsewhere)
    finder.index(CATALOG)
    await found(finder, "message")
    assert elsewhere.indexed == [CATALOG.version]
    finder.index(Catalog())
    assert len(elsewhere.indexed) == 2
    await finder.close()
    assert elsewhere.ended


async def test_the_limit_is_kept_and_none_are_none() -> None:
    finder = ToolSearch({}, None, None)
    assert len((await found(finder, "slack message channel", 1)).hits) == 1
    assert (await found(finder, "slack message channel", 0)).hits == ()


# --- signals ------------------------------------------------------------------------------------------------


@pytest.fixture
def usage(tmp_path: Path) -> UsageStore:
    return UsageStore(usage_path(str(tmp_path / "config.json")), pytest.fail)


async def test_signals_are_the_very_same_until_something_changes(usage: UsageStore) -> None:
    clock = [0.0]
    finder = ToolSearch({"bank": 2.0}, usage, None, lambda: clock[0])
    first = finder.signals(CATALOG, frozenset())
    assert first is finder.signals(CATALOG, frozenset())
    assert first.boosts == {"bank": 2.0}
    finder.record_use(SEND, Exchange(Client()))
    used = finder.signals(CATALOG, frozenset())
    assert used.uses == pytest.approx({"slack__send_message": 1.0}, abs=1e-4)
    failing = finder.signals(CATALOG, frozenset({"bank"}))
    assert failing is not used
    assert failing.failing == {"bank"}
    clock[0] += 4_000
    assert finder.signals(CATALOG, frozenset({"bank"})) is not failing
    await finder.close()


def test_a_server_that_could_not_be_listed_is_stale() -> None:
    finder = ToolSearch({}, None, None)
    assert finder.signals(CATALOG, frozenset()).stale == set()
    later = merge(CATALOG, [Failed("bank", "it is down", 2.0)])
    assert finder.signals(later, frozenset()).stale == {"bank"}


async def test_a_tool_that_was_used_rises(usage: UsageStore) -> None:
    finder = ToolSearch({}, usage, None)
    twins = [tool(server, "post", f"Deliver a parcel by {server} mail") for server in ("north", "south")]
    both = searcher(*twins)
    question = SearchRequest("deliver this parcel", 2, Filters())
    assert names(await finder.search(question, both, CATALOG)) == ["north__post", "south__post"]
    finder.record_use(twins[1], Exchange(Client()))
    results = await finder.search(question, both, CATALOG)
    assert names(results) == ["south__post", "north__post"]
    assert dict(results.hits[0].moved)["used before"] > 1
    assert results.hits[1].moved == ()
    await finder.close()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """What a config in this folder would have learnt, damaged."""
    kept = Path(usage_path(str(tmp_path / "config.json")))
    kept.parent.mkdir()
    kept.write_bytes(b"damaged")
    return kept


async def test_who_is_not_to_learn_reads_and_writes_nothing(damaged: Path) -> None:
    path = damaged.parent.parent / "config.json"
    config = parse(json.dumps({"search": {"learn": False}, "mcpServers": {}}).encode(), str(path), {})
    finder = ToolSearch.of(config, pytest.fail)
    finder.record_use(SEND, Exchange(Client()))
    await found(finder, "send")
    await finder.close()
    assert load(str(damaged))[1] != ()  # as it was


# --- learned words ------------------------------------------------------------------------------------------

DELIVER = [tool(server, "post", f"Deliver a parcel by {server} mail") for server in ("north", "south")]
PERSON = Principal("https://issuer.example", "ann")


def configured(folder: Path, **keys: Any) -> Config:
    document = json.dumps({"mcpServers": {}, **keys}).encode()
    return parse(document, str(folder / "config.json"), {"HOME": str(folder)})


async def order(finder: ToolSearch, exchange: Exchange, query: str = "deliver this parcel") -> list[str]:
    results = await finder.search(SearchRequest(query, 2, Filters()), searcher(*DELIVER), CATALOG)
    finder.record_search(query, results, exchange)
    return names(results)


async def test_the_words_that_led_to_a_tool_lift_it(tmp_path: Path) -> None:
    finder, exchange = ToolSearch.of(configured(tmp_path), pytest.fail), Exchange(Client())
    assert await order(finder, exchange) == ["north__post", "south__post"]
    finder.record_use(DELIVER[1], exchange)
    learned = finder.signals(CATALOG, frozenset()).words
    assert learned is not None
    assert await order(finder, exchange) == ["south__post", "north__post"]
    await finder.close()
    kept = load(usage_path(str(tmp_path / "config.json")))[0]
    assert kept["south__post"].words == {"deliv": 1.0, "parcel": 1.0}
    again = ToolSearch.of(configured(tmp_path), pytest.fail)
    assert await order(again, exchange) == ["south__post", "north__post"]
    await again.close()


@pytest.mark.parametrize(
    ("keys", "exchange"),
    [
        ({"search": {"learn": "calls"}}, Exchange(Client())),
        ({"http": {"api_keys": "keys.json"}}, Exchange(Client())),
        ({}, Exchange(Client(), principal=PERSON)),
        ({}, Exchange(Client(principal=PERSON, has_session=False))),
        ({}, Exchange(Client(has_session=False))),
    ],
    ids=["calls only", "several people", "a person", "a person without a session", "a client like any other"],
)
async def test_words_are_not_learned_of(tmp_path: Path, keys: Json, exchange: Exchange) -> None:
    finder = ToolSearch.of(configured(tmp_path, **keys), pytest.fail)
    await order(finder, exchange)
    finder.record_use(DELIVER[1], exchange)
    assert finder.signals(CATALOG, frozenset()).words is None
    await finder.close()
    kept = load(usage_path(str(tmp_path / "config.json")))[0]
    assert (list(kept), kept["south__post"].words) == (["south__post"], {})


@pytest.mark.parametrize("keys", [{"search": {"learn": "calls"}}, {"http": {"api_keys": "keys.json"}}])
async def test_where_words_are_not_learned_earlier_ones_count_nothing_and_go(
    tmp_path: Path, keys: Json
) -> None:
    path, now = usage_path(str(tmp_path / "config.json")), time.time()
    save(
        path, {"south__post": UseCount(1.0, now, {"deliv": 1.0}), "old": UseCount(1.0, now, {"x": 1.0})}, now
    )
    finder = ToolSearch.of(configured(tmp_path, **keys), pytest.fail)
    assert finder.signals(CATALOG, frozenset()).words is None
    finder.record_use(DELIVER[1], Exchange(Client()))
    await finder.close()
    assert all(use.words == {} for use in load(path)[0].values())


async def test_who_has_gone_teaches_nothing(tmp_path: Path) -> None:
    finder, exchange = ToolSearch.of(configured(tmp_path), pytest.fail), Exchange(Client())
    await order(finder, exchange)
    finder.remove_client(exchange.client)
    finder.record_use(DELIVER[1], exchange)
    assert finder.signals(CATALOG, frozenset()).words is None
    await finder.close()
