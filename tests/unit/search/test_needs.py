"""Several needs in one request: which there are, by what they find, and how their tools are merged."""

from itertools import permutations

import pytest
from helpers.search_tools import SPELLED, catalogs, found, index_of, names, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.fusion import RankedDocument, Ranking
from mcpzip.search.needs import (
    FIRST_BONUS,
    MAX_HALVES,
    NEED_MET,
    SERVER_WEIGHT,
    WHOLE_WEIGHT,
    RankedQuery,
    find_needs,
    merged,
)
from mcpzip.search.query import Filters, analyze_query

TOOLS = searcher(
    tool("files", "read_file", "Read a file from disk"),
    tool("files", "write_file", "Write a file to disk"),
    tool("slack", "send_message", "Post a message to a channel of Slack"),
    tool("slack", "list_channels", "List channels"),
    tool("mail", "send_mail", "Send a mail"),
)


def test_the_best_of_each_need_is_found_and_marked() -> None:
    results = TOOLS.search("read the file and post it to Slack", 5)
    assert [need for need, _ in results.needs] == ["read the file", "post it to Slack"]
    best = {hit.need: hit.entry.name for hit in reversed(results.hits)}
    assert best == {"read the file": "files__read_file", "post it to Slack": "slack__send_message"}
    assert set(names(results)[:2]) == {"files__read_file", "slack__send_message"}


def test_what_no_tool_answers_is_no_need_but_says_more_of_the_other() -> None:
    results = TOOLS.search("read the file and upload purple zebras", 5)
    assert (results.needs, {hit.need for hit in results.hits}) == ((), {""})


def test_the_quality_is_that_of_the_need_answered_worst() -> None:
    results = TOOLS.search("read the file and send a picture to the channel", 5)
    answered = dict(results.needs)
    assert len(answered) == 2
    assert answered["read the file"] == "strong"
    assert results.quality == answered["send a picture to the channel"] == "fair"


def test_one_need_has_no_mark() -> None:
    results = TOOLS.search("read the file", 5)
    assert (results.needs, {hit.need for hit in results.hits}) == ((), {""})


def test_a_list_of_things_is_several_needs_where_they_are_of_different_tools() -> None:
    crm = searcher(
        tool("crm", "list_customers", "List the customers"),
        tool("bank", "list_invoices", "List the unpaid invoices"),
        tool("files", "read_file", "Read a file"),
    )
    results = crm.search("list customers and unpaid invoices", 2)
    assert [need for need, _ in results.needs] == ["list customers", "list unpaid invoices"]
    assert set(names(results)) == {"crm__list_customers", "bank__list_invoices"}


def test_a_list_of_things_that_one_tool_answers_is_one_need() -> None:
    shop = searcher(
        tool("shop", "export_report", "Export orders and returned goods as a report"),
        tool("files", "read_file", "Read a file"),
    )
    results = shop.search("export orders and returned goods", 2)
    assert (results.needs, names(results)[0]) == ((), "shop__export_report")


def test_a_need_without_a_good_tool_takes_nothing_from_the_others() -> None:
    results = TOOLS.search(
        "We fly zebras on Friday. Read the file and post a message to Slack. Thanks zebras!", 5
    )
    assert [need for need, _ in results.needs] == ["Read the file", "post a message to Slack."]


@pytest.mark.parametrize("spelled", ["{}", "Please {}", "{}!"])
@pytest.mark.parametrize(
    "name", ["find_and_replace_text", "read_file_then_send_mail", "list_users_and_list_groups"]
)
def test_the_name_of_a_tool_is_one_need_and_comes_first(name: str, spelled: str) -> None:
    made = searcher(
        tool("a", name),
        tool("b", "find_text"),
        tool("b", "replace_text"),
        tool("b", "read_file"),
        tool("b", "send_mail"),
        tool("b", "list_users"),
        tool("b", "list_groups"),
    )
    results = made.search(spelled.format(name.replace("_", " ")), 5)
    assert (results.needs, names(results)[0]) == ((), f"a__{name}")


def test_the_order_of_the_catalog_does_not_matter() -> None:
    tools = [
        tool("files", "read_file"),
        tool("files", "write_file"),
        tool("slack", "post_message"),
        tool("x", "read_post"),
    ]
    query = "read the file and then post the message"
    assert len({tuple(found(searcher(*order), query)) for order in permutations(tools)}) == 1


@given(catalogs, st.lists(st.sampled_from(SPELLED), min_size=1, max_size=3))
def test_several_needs_bring_each_need_its_best(made: list[Entry], spelled: list[str]) -> None:
    known = searcher(*made)
    results = known.search(f"get the {' '.join(spelled)} file and then send a message to the user", 50)
    shown = {name for hit in results.hits for name in (hit.entry.name, *hit.also)}
    assert {hit.need for hit in results.hits} == (
        {need for need, _ in results.needs} or {""} if shown else set()
    )
    for need, _ in results.needs:
        assert known.search(need, 1).hits[0].entry.name in shown


FIVE = index_of(*(tool(server, f"t{number}") for number, server in enumerate("aabbc")))
scores = st.dictionaries(st.integers(0, 4), st.integers(1, 88).map(lambda each: each / 100), min_size=1)


def ranked(text: str, by_document: dict[int, float]) -> RankedQuery:
    order = sorted(by_document, key=lambda number: (-by_document[number], number))
    documents = tuple(RankedDocument(number, by_document[number], 0.5, None) for number in order)
    return RankedQuery(text, analyze_query(text, Filters(), FIVE), Ranking(documents, len(order), 5))


@given(scores, st.lists(scores, min_size=2, max_size=4))
def test_the_next_tool_is_always_the_one_that_adds_most(
    whole: dict[int, float], parts: list[dict[int, float]]
) -> None:
    needs = [ranked(f"send part {number}", part) for number, part in enumerate(parts)]
    query = ranked("all", whole)
    got = [(need.text, each.document) for need, each in merged(FIVE, query, needs)]
    left = sorted(set(whole).union(*parts), key=lambda number: FIVE.document(number).name)
    assert sorted(number for _, number in got) == sorted(left)

    def best_at(server: str, part: dict[int, float]) -> float:
        return max((part[n] for n in part if FIVE.document(n).entry.server == server), default=0.0)

    def fixed(number: int) -> float:
        at_server = sum(best_at(FIVE.document(number).entry.server, part) for part in parts) / len(parts)
        first = FIRST_BONUS * (number == query.ranking.documents[0].document)
        return WHOLE_WEIGHT * whole.get(number, 0.0) + SERVER_WEIGHT * at_server + first

    weights = [1.0] * len(parts)
    for text, number in got:
        adds = {n: max(w * p.get(n, 0.0) for w, p in zip(weights, parts, strict=True)) for n in left}
        assert adds[number] + fixed(number) == pytest.approx(max(adds[n] + fixed(n) for n in left))
        left.remove(number)
        weights[
            [w * p.get(number, 0.0) for w, p in zip(weights, parts, strict=True)].index(adds[number])
        ] *= NEED_MET
        best = max(part.get(number, 0.0) for part in parts)
        assert parts[int(text.split()[-1])].get(number, 0.0) == best


@given(
    st.lists(st.sampled_from(["send", "mail", "list", "users", ", ", " and ", "the"]), max_size=60).map(
        " ".join
    )
)
def test_a_query_costs_a_bounded_number_of_rankings(text: str) -> None:
    asked: list[str] = []

    def rank(part: str) -> RankedQuery:
        asked.append(part)
        return ranked(part, {len(asked) % 5: 0.5})

    needs = find_needs(ranked(text, {0: 0.4}), rank)
    assert len(asked) <= 8 + 2 * MAX_HALVES
    assert len(needs) == len({need.text for need in needs}) != 1
