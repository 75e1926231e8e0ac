"""The keyword tier: what more words do to a share, and what a name has over a text."""

from itertools import permutations

import pytest
from helpers.search_tools import SPELLED, catalogs, found, index_of, queries, searcher, sentences, tool
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters
from mcpzip.search.documents import Document
from mcpzip.search.index import Index
from mcpzip.search.keyword import QueryTerms, max_score, score_documents
from mcpzip.search.query import analyze_query

# Words that are no verbs, share no stem, and make no third word when joined.
WORDS = ["river", "mountain", "forest", "island", "desert", "valley", "glacier", "canyon"]
text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
texts = st.lists(text, min_size=2, max_size=6)
plain_queries = sentences(SPELLED, 5)


def catalog(descriptions: list[list[str]]) -> list[Entry]:
    return [tool("s", f"t{place}", " ".join(words)) for place, words in enumerate(descriptions)]


def score(entries: list[Entry], query: str, name: str) -> float:
    scores = {hit.entry.name: hit.score for hit in searcher(*entries).search(query, 50).hits}
    return scores.get(name, 0.0)


def boost(said: QueryTerms, document: Document) -> float:
    return said.boost(document, said.name_coverage(document), said.verbs_agree(document))


def postings_of(index: Index, query: str) -> dict[str, float]:
    """What the words of ``query`` are worth, advantages and all, by tool."""
    plan = analyze_query(query, Filters(), index).plan
    said = QueryTerms(index, plan)
    return {
        index.document(number).name: worth * boost(said, index.document(number))
        for number, worth in score_documents(index, plan).items()
    }


@given(texts, st.sampled_from(WORDS))
def test_one_more_matching_word_never_lowers_the_score(descriptions: list[list[str]], word: str) -> None:
    longer = [[*descriptions[0], word], *descriptions[1:]]
    assert score(catalog(longer), word, "s__t0") >= score(catalog(descriptions), word, "s__t0") - 1e-6


@given(texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True), st.data())
def test_a_matching_word_in_place_of_noise_never_lowers_the_score(
    descriptions: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    missing = [word for word in query if word not in descriptions[0]]
    noise = [place for place, word in enumerate(descriptions[0]) if word not in query]
    assume(missing and noise)
    place = data.draw(st.sampled_from(noise))
    # The noise stands elsewhere still, so that no other word becomes the rarer for its going.
    before = [*descriptions, [descriptions[0][place]]]
    better = [*descriptions[0][:place], missing[0], *descriptions[0][place + 1 :]]
    asked = " ".join(query)
    assert (
        score(catalog([better, *before[1:]]), asked, "s__t0") >= score(catalog(before), asked, "s__t0") - 1e-6
    )


@given(texts, st.sampled_from(WORDS), text)
def test_longer_noise_never_raises_the_score(
    descriptions: list[list[str]], word: str, noise: list[str]
) -> None:
    noise = [other for other in noise if other != word]
    longer = [[*descriptions[0], *noise], *descriptions[1:]]
    assert score(catalog(longer), word, "s__t0") <= score(catalog(descriptions), word, "s__t0") + 1e-6


@given(texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True), st.sampled_from(WORDS))
def test_a_word_more_in_the_query_takes_nothing_from_any_tool(
    descriptions: list[list[str]], query: list[str], word: str
) -> None:
    index = index_of(*catalog(descriptions))
    before, after = postings_of(index, " ".join(query)), postings_of(index, " ".join([*query, word]))
    assert all(after[name] >= worth - 1e-9 for name, worth in before.items())


@given(texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True), st.sampled_from(WORDS))
def test_nor_puts_a_tool_that_has_it_behind_one_that_lacks_it(
    descriptions: list[list[str]], query: list[str], word: str
) -> None:
    made = catalog(descriptions)
    has = {f"s__t{place}" for place, words in enumerate(descriptions) if word in words}
    before, after = (
        {hit.entry.name: hit.words for hit in searcher(*made).search(" ".join(asked), 50).hits}
        for asked in (query, [*query, word])
    )
    for one in has & before.keys():
        for other in before.keys() - has:
            if before[one] >= before[other]:
                assert after[one] >= after[other] - 1e-9


@given(catalogs, queries)
def test_a_share_is_a_share(made: list[Entry], query: str) -> None:
    index = index_of(*made)
    plan = analyze_query(query, Filters(), index).plan
    assert max_score(index, plan) > 0
    assert all(worth > 0 for worth in score_documents(index, plan).values())
    for hit in searcher(*made).search(query, 50).hits:
        assert 0.0 <= hit.words <= 1.0


@given(catalogs, plain_queries)
def test_a_word_nobody_knows_lowers_every_share(made: list[Entry], query: str) -> None:
    known = searcher(*made)
    before, after = known.search(query, 50), known.search(f"{query} qqqqqqqq", 50)
    assume(after.unknown_words == (*before.unknown_words, "qqqqqqqq"))
    shares = {hit.entry.name: hit.words for hit in before.hits}
    assert all(hit.words <= shares[hit.entry.name] + 1e-9 for hit in after.hits)


def test_the_beginning_of_a_name_comes_before_a_better_text() -> None:
    made = searcher(
        tool("chat", "list_channels_of_team"),
        tool("tv", "channels", "list channels list channels"),
        tool("tv", "program", "list channels by listing the channel list"),
    )
    assert found(made, "list channels")[0] == "chat__list_channels_of_team"
    assert found(made, "list chan")[0] == "chat__list_channels_of_team"
    assert found(made, "chat list")[0] == "chat__list_channels_of_team"


def test_half_a_word_is_no_beginning() -> None:
    made = searcher(tool("db", "postgres_query"), tool("chat", "send", "post to the chat"))
    assert found(made, "post")[0] == "chat__send"


def test_the_server_that_is_named_is_favoured() -> None:
    same = [
        tool(server, "send_message", f"Send a message to a channel ({server[0]})")
        for server in ("discord", "slack", "zulip")
    ]
    made = searcher(*same, tool("mail", "send_mail", "Like slack, but slower"))
    assert found(made, "send a message")[:3] == [
        "discord__send_message",
        "slack__send_message",
        "zulip__send_message",
    ]
    for server in ("discord", "slack", "zulip"):
        assert found(made, f"send a message on {server}")[0] == f"{server}__send_message"


def test_the_verb_of_the_name_decides_between_tools_of_one_thing() -> None:
    things = ("create", "delete", "get", "list", "update")
    made = searcher(*(tool("crm", f"{verb}_contact", "A contact of the CRM") for verb in things))
    asked = {"add a contact": "create", "remove a contact": "delete", "fetch the contact": "get"}
    asked |= {"browse contacts": "list", "edit a contact": "update", "rename contact": "update"}
    assert {query: found(made, query)[0] for query in asked} == {
        query: f"crm__{verb}_contact" for query, verb in asked.items()
    }


def test_a_verb_no_tool_has_stands_for_its_family() -> None:
    made = searcher(tool("crm", "delete_contact"), tool("crm", "get_contact"), tool("crm", "list_deals"))
    for query, name in (("remove", "crm__delete_contact"), ("browse", "crm__list_deals")):
        results = made.search(query, 5)
        assert [hit.entry.name for hit in results.hits] == [name]
        assert (results.unknown_words, results.hits[0].matched) == ((), (query,))
    assert made.search("duplicate", 5).unknown_words == ("duplicate",)


def test_reading_is_not_answered_with_writing() -> None:
    made = searcher(tool("todo", "delete_task", "all my tasks"), tool("todo", "fetch_task", "all my tasks"))
    assert found(made, "show all my tasks") == ["todo__fetch_task", "todo__delete_task"]


@pytest.mark.parametrize("order", list(permutations(["send", "message", "slack"])))
def test_the_order_of_words_does_not_matter(order: tuple[str, ...]) -> None:
    made = searcher(tool("slack", "send_message"), tool("slack", "delete_message"), tool("mail", "send"))
    assert found(made, " ".join(order))[0] == "slack__send_message"


def test_a_word_written_apart_meets_the_word_written_together() -> None:
    made = searcher(
        tool("github", "create_issue"),
        tool("web", "fetch", "Reads pages of GitHub and others"),
        tool("x", "git"),
        tool("y", "hub"),
    )
    for query in ("github", "git hub", "GitHub", "git-hub"):
        assert {"github__create_issue", "web__fetch"} <= set(found(made, query)), query


def test_what_is_said_of_a_name() -> None:
    index = index_of(tool("slack", "send_message"), tool("slack", "send_message_later"), tool("mail", "send"))
    by_name = {document.name: document for document in index.documents if document}

    def said(query: str) -> QueryTerms:
        return QueryTerms(index, analyze_query(query, Filters(), index).plan)

    one, longer = by_name["slack__send_message"], by_name["slack__send_message_later"]
    assert said("send message").name_coverage(one) == 1.0
    assert 0.0 < said("send message").name_coverage(longer) < 1.0
    assert said("slack send message").is_exact_name(one)
    assert not said("send message").is_exact_name(longer)
    assert said("send message").is_name_prefix(longer)
    assert said("slack send").is_name_prefix(longer)
    assert not said("message later").is_name_prefix(longer)
    assert boost(said("slack send message"), one) > boost(said("send message"), one)
