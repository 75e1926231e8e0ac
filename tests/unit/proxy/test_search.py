"""The reply of `search_tools`: within its budget, every tool named, nothing kept silent, the same bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.model.entry import Entry
from mcpzip.model.signature import signature
from mcpzip.model.tokens import estimate
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.local_search import still_offered
from mcpzip.proxy.search_reply import search_result
from mcpzip.proxy.search_request import PendingServers, SearchReport, SearchRequest, read_search_request
from mcpzip.proxy.token_budget import ALSO, SPARED, fit_to_budget
from mcpzip.search import Filters, Hit, Results
from mcpzip.search.tiers import KEYWORD, LLM, SEMANTIC, TierAbsence


def tool(name: str, server: str = "shop", description: str = "", **parameters: object) -> Entry:
    raw = {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": parameters, "required": sorted(parameters)[:1]},
    }
    return Entry.parse(server, json.dumps(raw).encode())


ANY = Filters()
TEXT = {"type": "string"}
LONG = "Pay an open invoice of a supplier from the account that is named, on the day asked for, and book it"
PAY = tool("pay_invoice", description=LONG, invoice=TEXT, account=TEXT, day=TEXT, note=TEXT)
SEND = tool("send_message", "slack", "Send a message to a channel", channel=TEXT, text=TEXT)
READ = tool("read_file", "disk", "Read a file", path=TEXT)


def hit(entry: Entry, **more: object) -> Hit:
    found = Hit(entry=entry, score=0.5, tier=KEYWORD, matched=("word",), words=0.5)
    return replace(found, **more)  # type: ignore[arg-type]


def near(entry: Entry, **more: object) -> Hit:
    return hit(entry, matched=(), words=0.0, tier=SEMANTIC, similarity=0.4, **more)


def results(*hits: Hit, **more: object) -> Results:
    matching = sum(bool(each.matched) for each in hits)
    found = Results(
        hits=hits,
        matching=matching,
        searched=9,
        quality="fair" if hits else "none",
        tiers=("keyword", "semantic"),
        unknown_words=(),
        corrected=(),
        nearest_words=(),
        nearest_servers=(),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def catalog(*entries: Entry) -> Catalog:
    names = sorted({entry.server for entry in entries})
    return Catalog(
        {
            name: ServerRecord(name, tuple(e for e in entries if e.server == name), fetched_at=1.0)
            for name in names
        }
    )


CATALOG = catalog(PAY, SEND, READ)


def said(
    found: Results,
    budget: int = 1_500,
    query: str = "pay",
    filters: Filters = ANY,
    unavailable: dict[str, str] | None = None,
    known: Catalog = CATALOG,
    reads: tuple[Entry, ...] = (),
) -> list[str]:
    """The lines that the model reads."""
    question, report = SearchRequest(query, 5, filters), SearchReport(found, known, unavailable or {})
    result = json.loads(search_result(question, report, 61.0, budget, reads=reads))
    text = result["content"][0]["text"]
    assert isinstance(text, str)
    return text.split("\n")


# --- lines --------------------------------------------------------------------------------------------------


def test_where_there_is_room_a_tool_is_its_signature() -> None:
    *lines, status = said(results(hit(PAY), hit(SEND)))
    assert lines == [signature(PAY), signature(SEND)]
    assert status == "-- 2 of 2 matches in 9 tools · keyword+semantic · fair"


def test_where_there_is_less_descriptions_go_before_parameters_and_those_before_names() -> None:
    def line(budget: int) -> str:
        return fit_to_budget([hit(PAY)], budget, lambda entry: None)[0].text

    shown = list(dict.fromkeys(line(budget) for budget in range(120, 0, -1)))
    assert shown == [
        signature(PAY),
        "shop__pay_invoice: Pay an open invoice of a supplier from the account that is… "
        "[account:string*, day:string, invoice:string, note:string]",
        "shop__pay_invoice [account:string*, day:string, invoice:string, note:string]",
        "shop__pay_invoice",
    ]


def test_the_last_gives_way_first() -> None:
    budget = estimate(signature(SEND)) + estimate(signature(PAY)) + 1
    first, second = (line.text for line in fit_to_budget([hit(SEND), hit(PAY)], budget, lambda entry: None))
    assert first == signature(SEND)
    assert len(second) < len(signature(PAY))


def test_tools_that_read_are_marked_whatever_else_is_left_out() -> None:
    found = results(hit(READ, also=("nas__read_file",)), hit(SEND), hit(ADMIN_TOOLS[0]))
    marked = [READ, ADMIN_TOOLS[0]]
    read, send, admin, _ = said(found, reads=tuple(marked))
    assert read == f"{signature(READ)} (also on: nas__read_file) read-only"
    assert send == signature(SEND)
    assert admin == f"{ADMIN_TOOLS[0].tool}: {ADMIN_TOOLS[0].description} read-only"
    assert said(found) == [line.removesuffix(" read-only") for line in said(found, reads=tuple(marked))]
    for budget in range(1, 200):
        lines = fit_to_budget(found.hits, budget, lambda entry: None, marked)
        assert lines == [type(line).of(line.text) for line in lines]
        for line, one in zip(lines, found.hits, strict=False):
            assert line.text.endswith(" read-only") == (one.entry in marked)
        assert len(lines) == 1 or sum(line.tokens for line in lines) <= budget


def many(count: int) -> list[Hit]:
    return [
        hit(tool(f"tool_{n}", description=LONG, invoice=TEXT, account=TEXT, day=TEXT)) for n in range(count)
    ]


def test_the_first_ten_lose_nothing_while_others_have_something_to_lose() -> None:
    hits = many(40)
    lines = fit_to_budget(hits, 900, lambda entry: None)
    assert [line.text for line in lines[:SPARED]] == [signature(each.entry) for each in hits[:SPARED]]
    assert lines[-1].text == hits[-1].entry.name


names = st.text("abcdefgh_XYZ019", min_size=1, max_size=24)
entries = st.builds(
    lambda name, server, about, given: tool(name, f"s{server}", about, **dict.fromkeys(given, TEXT)),
    names,
    st.integers(0, 5),
    st.text(max_size=300),
    st.lists(names, max_size=12),
)
tools = st.lists(entries, max_size=50, unique_by=lambda entry: entry.name)


@given(tools, st.integers(0, 3_000))
def test_lines_stay_within_the_budget_and_all_are_named_where_names_fit(
    found: list[Entry], budget: int
) -> None:
    hits = [hit(entry) for entry in found]
    lines = fit_to_budget(hits, budget, lambda entry: None)
    assert len(lines) <= 1 or sum(line.tokens for line in lines) <= budget
    assert all(line.tokens == estimate(line.text + "\n") for line in lines)
    for each, line in zip(hits, lines, strict=False):
        assert line.text == each.entry.name or line.text.startswith(
            (f"{each.entry.name}:", f"{each.entry.name} [")
        )
    if sum(estimate(each.entry.name) + 1 for each in hits) <= budget:
        assert len(lines) == len(hits)


reasons = st.text(max_size=200)


@given(
    tools,
    st.integers(100, 2_000),
    st.dictionaries(st.text("abc-", min_size=1, max_size=20), reasons, max_size=8),
    st.lists(
        st.builds(TierAbsence, st.sampled_from([SEMANTIC, LLM]), st.just("gemini"), reasons), max_size=2
    ),
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), max_size=20),
    st.lists(st.text(min_size=1, max_size=100), max_size=20),
)
def test_a_reply_stays_within_its_budget(
    found: list[Entry],
    budget: int,
    unavailable: dict[str, str],
    absent: list[TierAbsence],
    corrected: list[tuple[str, str]],
    unknown: list[str],
) -> None:
    shown = results(
        *map(near if unknown else hit, found),
        absent=tuple(absent),
        corrected=tuple(corrected),
        unknown_words=tuple(unknown),
        nearest_servers=("shop", "slack"),
    )
    lines = said(shown, budget, unavailable=unavailable)
    assert estimate("\n".join(lines)) <= budget
    assert any(line.startswith("-- ") for line in lines)


@given(tools, st.integers(100, 2_000))
def test_the_same_results_are_the_same_bytes(found: list[Entry], budget: int) -> None:
    question, shown = SearchRequest("pay", 5, Filters()), results(*map(hit, found))
    unavailable = {"slack": "down", "disk": "away"}
    turned = dict(reversed(unavailable.items()))
    first = search_result(question, SearchReport(shown, CATALOG, unavailable), 60.0, budget)
    assert first == search_result(question, SearchReport(shown, CATALOG, turned), 60.0, budget)


def test_the_same_tool_elsewhere_is_a_note() -> None:
    also = tuple(f"{server}__send_message" for server in ("backup", "copy", "spare", "fourth", "fifth"))
    assert said(results(hit(SEND, also=also[:1])))[0].endswith(" (also on: backup__send_message)")
    line = said(results(hit(SEND, also=also)))[0]
    assert line.endswith(f"(also on: {', '.join(also[:ALSO])} and 2 more)")


def test_servers_that_have_tools_as_good_are_named() -> None:
    several = results(hit(SEND), elsewhere=("teams", "matrix", "irc", "mail"))
    assert said(several)[-1].endswith(" · also from teams, matrix, irc and 1 more")


def test_our_own_tools_are_shown_by_the_name_that_runs_them() -> None:
    lines = said(results(hit(ADMIN_TOOLS[0])))
    assert lines[0].startswith("proxy_status: ")


# --- several needs ------------------------------------------------------------------------------------------


def test_several_needs_stand_each_under_its_own_heading() -> None:
    one, other = "read the file", "post it to Slack"
    found = results(
        hit(READ, need=one),
        hit(SEND, need=other),
        hit(PAY, need=one),
        needs=((one, "strong"), (other, "weak")),
    )
    *lines, status = said(found)
    assert lines == [
        'for "read the file" (strong):',
        signature(READ),
        signature(PAY),
        'for "post it to Slack" (weak):',
        signature(SEND),
    ]
    assert status.startswith("-- 3 of 3 matches")


def test_a_need_that_nothing_answers_is_named_too() -> None:
    found = results(hit(READ, need="read it"), needs=(("read it", "fair"), ("xyzzy it", "none")))
    assert 'for "xyzzy it" (none):' in said(found)


# --- the status ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (results(hit(PAY), matching=23), "1 of 23 matches in 9 tools"),
        (results(near(PAY), near(SEND)), "2 nearest in meaning of 9 tools"),
        (results(hit(PAY), near(SEND)), "1 of 1 matches and 1 nearest in meaning in 9 tools"),
        (results(hit(PAY, matched=(), score=1.0), matching=0), "1 of 1 matches in 9 tools"),
        (results(), "0 of 0 matches in 9 tools"),
    ],
)
def test_the_status_says_how_many_of_how_many(found: Results, count: str) -> None:
    assert said(found)[-1].removeprefix("-- ").split(" · ")[0] == count


def test_a_tier_that_is_absent_is_named_with_its_reason() -> None:
    absent = (TierAbsence(LLM, "gemini", "429,\nagain in 30 s"),)
    assert said(results(hit(PAY), absent=absent))[-1].endswith("· llm (gemini) absent: 429, again in 30 s")


def test_a_word_that_was_read_as_another_is_told() -> None:
    assert said(results(hit(PAY), corrected=(("mesage", "message"),)))[-1].endswith(
        "read 'mesage' as 'message'"
    )


def test_why_a_server_is_down_is_said_only_where_it_matters_for_the_search() -> None:
    """Six lines on dead servers stood below every search, whatever it was for."""
    lines = said(results(hit(SEND)), unavailable={"shop": "it exited", "new": "it exited"})
    assert lines[-2:] == [
        "-- new is down (no tools yet): it exited",
        "-- also down: shop; see proxy_status",
    ]
    assert (
        said(results(hit(SEND)), unavailable={"shop": "it exited"})[-1] == "-- down: shop; see proxy_status"
    )


def test_when_no_tool_fits_well_the_status_says_so() -> None:
    found = results(near(PAY), near(SEND), quality="weak")
    assert said(found)[-1] == "-- no tool fits well; the 2 nearest in meaning of 9 tools · keyword+semantic"


def test_a_server_that_is_down_is_named_with_the_age_of_its_tools() -> None:
    lines = said(results(hit(PAY)), unavailable={"shop": "it exited", "new": "it is still starting"})
    assert lines[-2:] == [
        "-- new is down (no tools yet): it is still starting",
        "-- shop is down (tools of 1 min ago): it exited",
    ]


def test_reasons_give_way_to_tools() -> None:
    unavailable = {f"server-{n}": "it can't be reached because its certificate has expired" for n in range(4)}
    lines = said(results(hit(PAY)), budget=100, unavailable=unavailable)
    assert lines[0].startswith("shop__pay_invoice")
    assert lines[-1] == "-- 4 servers are down; see proxy_status"


# --- nothing ------------------------------------------------------------------------------------------------


def test_words_that_lead_nowhere_are_told_above_what_is_nearest_in_meaning() -> None:
    first, second, status = said(results(near(PAY), unknown_words=("xyzzy",)))
    assert first == "No tool knows 'xyzzy'."
    assert second == signature(PAY)
    assert "nearest in meaning" in status


def test_what_comes_nearest_is_said_where_nothing_is_found() -> None:
    found = results(unknown_words=("invoise",), nearest_words=("invoice",), nearest_servers=("shop",))
    assert said(found)[0] == "No tool knows 'invoise'. Nearest words: invoice. Nearest servers: shop."


@pytest.mark.parametrize(
    ("query", "filters"), [("server:shpo pay", Filters()), ("pay", Filters(server="shpo"))]
)
def test_a_server_that_is_none_is_told_and_the_nearest_named(query: str, filters: Filters) -> None:
    found = results(searched=0, nearest_servers=("shop",))
    assert said(found, query=query, filters=filters)[0] == "There is no server 'shpo'. The nearest: shop."


def test_a_server_without_such_tools_is_not_called_unknown() -> None:
    found = results(searched=0, nearest_servers=("shop",))
    lines = said(found, filters=Filters("shop", read_only=True))
    assert lines[0] == "The filters leave no tool of 'shop'. The nearest: shop."


def test_without_tools_there_is_a_way_to_see_why() -> None:
    assert said(results(searched=0), known=Catalog())[0].startswith("There are no tools yet.")


# --- for people and tests -----------------------------------------------------------------------------------


def test_scores_are_left_out_unless_the_config_asks_for_them() -> None:
    report = SearchReport(results(hit(PAY)), CATALOG, {}, PendingServers(("late",)))
    assert set(json.loads(search_result(SearchRequest("q", 5, Filters()), report, 0.0))) == {"content"}


def test_with_details_scores_stand_in_meta() -> None:
    found = results(
        hit(
            SEND,
            score=0.123456,
            similarity=0.25,
            need="post it",
            also=("backup__send_message",),
            moved=(("boost", 2.0),),
        ),
        needs=(("post it", "fair"),),
        absent=(TierAbsence(LLM, "gemini", "429"),),
        corrected=(("pots", "post"),),
        unknown_words=("xyzzy",),
    )
    result = json.loads(
        search_result(SearchRequest("q", 5, Filters()), SearchReport(found, CATALOG, {}), 0.0, details=True)
    )
    assert result["_meta"]["mcpzip/search"] == {
        "quality": "fair",
        "matching": 1,
        "searched": 9,
        "tiers": ["keyword", "semantic"],
        "absent": [{"tier": "llm", "method": "gemini", "reason": "429"}],
        "corrected": [{"written": "pots", "read": "post"}],
        "unknown": ["xyzzy"],
        "needs": [{"need": "post it", "quality": "fair"}],
        "results": [
            {
                "name": "slack__send_message",
                "score": 0.1235,
                "tier": "keyword",
                "words": 0.5,
                "similarity": 0.25,
                "moved": {"boost": 2.0},
                "need": "post it",
                "also": ["backup__send_message"],
            }
        ],
    }


@pytest.mark.parametrize(("written", "meant"), [("true", True), ("false", None), ("null", None)])
def test_asking_for_tools_that_only_read_is_a_filter_and_not_asking_is_none(
    written: str, meant: bool | None
) -> None:
    question = read_search_request(b'{"query":"x","server":"","read_only":%b}' % written.encode(), 5)
    assert question.filters == Filters(None, meant)


# --- what will be there in a moment -------------------------------------------------------------------------


def with_pending(
    pending: PendingServers, budget: int = 1_500, *hits: Hit, **more: object
) -> dict[str, object]:
    found = results(*hits, **more)
    report = SearchReport(found, CATALOG, {}, pending)
    return json.loads(search_result(SearchRequest("lock", 5, ANY), report, 61.0, budget, details=True))


def test_servers_that_are_not_in_the_answer_yet_are_named() -> None:
    pending = PendingServers(tuple(f"up{n}" for n in range(30)), ("late",))
    said = with_pending(pending, 1_500, hit(PAY))
    text = said["content"][0]["text"]
    assert text.split("\n")[-2:] == [
        "-- still starting, their tools are not in this answer: up0, up1, up10, up11, up12, up13 and 24 more",
        "-- not indexed yet, their tools are not in this answer: late",
    ]
    meta = said["_meta"]["mcpzip/search"]
    assert (len(meta["starting"]), meta["unindexed"]) == (30, ["late"])


def test_no_tool_knows_a_word_so_far_while_servers_are_missing() -> None:
    none = {"unknown_words": ("lock",)}
    assert "No tool knows 'lock'." in with_pending(PendingServers(), **none)["content"][0]["text"]
    text = with_pending(PendingServers(("up",)), **none)["content"][0]["text"]
    assert "No tool so far knows 'lock'." in text


def test_servers_that_are_starting_are_counted_where_there_is_no_room_for_names() -> None:
    pending = PendingServers(tuple(f"server-with-a-long-name-{n}" for n in range(30)))
    text = with_pending(pending, 60, hit(PAY))["content"][0]["text"]
    assert text.split("\n")[-1] == "-- still starting, their tools are not in this answer: 30 servers"


def test_what_is_not_offered_any_more_is_in_no_results_of_an_older_index() -> None:
    pay, refund, transfer = tool("pay"), tool("refund"), tool("transfer", "bank")
    changed = tool("pay", description="Pays an invoice.")
    older = results(
        hit(pay, also=("bank__pay",)), hit(refund), hit(transfer), hit(ADMIN_TOOLS[0]), elsewhere=("bank",)
    )
    now = still_offered(older, catalog(changed))
    assert [each.entry for each in now.hits] == [changed, ADMIN_TOOLS[0]]
    assert (now.hits[0].also, now.elsewhere) == ((), ())


def test_nothing_left_is_nothing_found() -> None:
    assert still_offered(results(hit(tool("pay"))), catalog()).quality == "none"


def test_results_of_the_same_catalog_stay_as_they_are() -> None:
    pay = tool("pay")
    found = results(hit(pay), elsewhere=("shop",))
    assert still_offered(found, catalog(pay)) == found
