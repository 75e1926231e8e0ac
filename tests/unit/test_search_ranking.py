"""The ranking: what more words do to a score, and what never changes it."""

import json
from itertools import permutations
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.index import Index
from mcpzip.search.query import understand
from mcpzip.search.ranking import POOL, rank


def tool(server: str, name: str, description: str = "", **more: object) -> Entry:
    return Entry.parse(server, json.dumps({"name": name, "description": description, **more}).encode())


def searcher(*entries: Entry) -> Searcher:
    made = Searcher()
    made.index(entries, "1")
    return made


def names(made: Searcher, query: str, limit: int = 10, filters: Filters | None = None) -> list[str]:
    return [hit.entry.name for hit in made.search(query, limit, filters or Filters()).hits]


def score(entries: list[Entry], query: str, name: str) -> float:
    scores = {hit.entry.name: hit.score for hit in searcher(*entries).search(query, 50).hits}
    return scores.get(name, 0.0)


# Words that are no verbs, share no stem, and make no third word when joined.
WORDS = ["river", "mountain", "forest", "island", "desert", "valley", "glacier", "canyon"]
text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
texts = st.lists(text, min_size=2, max_size=6)


def catalog(descriptions: list[list[str]]) -> list[Entry]:
    return [tool("s", f"t{place}", " ".join(words)) for place, words in enumerate(descriptions)]


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


SPELLED = ["get", "list", "user", "users", "message", "git", "hub", "github", "delete", "file", "the", "id"]
name = st.lists(st.sampled_from(SPELLED), min_size=1, max_size=3).map("_".join)
entries = st.lists(
    st.builds(
        tool,
        st.sampled_from(["git", "slack", "mail-box"]),
        name,
        st.lists(st.sampled_from(SPELLED), max_size=6).map(" ".join),
    ),
    max_size=8,
    unique_by=lambda entry: entry.name,
)
queries = st.lists(st.sampled_from([*SPELLED, "mesage", "slack", "gihtub", "zebra", "?"]), max_size=5).map(
    " ".join
)


@given(entries, queries, st.randoms())
def test_the_order_of_the_catalog_does_not_matter(made: list[Entry], query: str, random: Random) -> None:
    shuffled = made[:]
    random.shuffle(shuffled)
    assert searcher(*made).search(query, 20) == searcher(*shuffled).search(query, 20)


@given(entries, st.text() | queries, st.integers(-1, 60))
def test_scores_fall_from_at_most_one_and_ties_go_by_name(made: list[Entry], query: str, limit: int) -> None:
    results = searcher(*made).search(query, limit)
    order = [(-hit.score, hit.entry.name) for hit in results.hits]
    assert order == sorted(order)
    assert all(0.0 <= hit.score <= 1.0 for hit in results.hits)
    assert len(results.hits) == min(max(limit, 0), results.matching)
    assert results.matching <= results.searched == len(made)


@given(entries, queries)
def test_a_tool_called_by_its_name_comes_first(made: list[Entry], extra: str) -> None:
    found = searcher(*made)
    for entry in made:
        assert names(found, entry.name)[0] == entry.name
        assert found.search(entry.name, 1).hits[0].score == 1.0
        assert found.search(entry.tool, 1).hits[0].entry.tool == entry.tool


@given(entries)
def test_the_words_of_a_name_come_before_all_but_the_name(made: list[Entry]) -> None:
    found = searcher(*made)
    for entry in made:
        asked = set(entry.tool.split("_"))
        said = " ".join(entry.tool.split("_"))
        first = found.search(said, 1).hits[0].entry
        with_server = {*first.server.split("-"), *first.tool.split("_")}
        assert {term.rstrip("s") for term in asked} in (
            {term.rstrip("s") for term in first.tool.split("_")},
            {term.rstrip("s") for term in with_server},
        )


def test_the_beginning_of_a_name_comes_before_a_better_text() -> None:
    found = searcher(
        tool("chat", "list_channels_of_team"),
        tool("tv", "channels", "list channels list channels"),
        tool("tv", "program", "list channels by listing the channel list"),
    )
    assert names(found, "list channels")[0] == "chat__list_channels_of_team"
    assert names(found, "list chan")[0] == "chat__list_channels_of_team"
    assert names(found, "chat list")[0] == "chat__list_channels_of_team"


def test_half_a_word_is_no_beginning() -> None:
    found = searcher(tool("db", "postgres_query"), tool("chat", "send", "post to the chat"))
    assert names(found, "post")[0] == "chat__send"


def test_the_server_that_is_named_is_favoured() -> None:
    same = [
        tool(server, "send_message", "Send a message to a channel")
        for server in ("discord", "slack", "zulip")
    ]
    found = searcher(*same, tool("mail", "send_mail", "Like slack, but slower"))
    assert names(found, "send a message")[:3] == [
        "discord__send_message",
        "slack__send_message",
        "zulip__send_message",
    ]
    for server in ("discord", "slack", "zulip"):
        assert names(found, f"send a message on {server}")[0] == f"{server}__send_message"


def test_the_verb_of_the_name_decides_between_tools_of_one_thing() -> None:
    things = ("create", "delete", "get", "list", "update")
    found = searcher(*(tool("crm", f"{verb}_contact", "A contact of the CRM") for verb in things))
    asked = {"add a contact": "create", "remove a contact": "delete", "fetch the contact": "get"}
    asked |= {"browse contacts": "list", "edit a contact": "update", "rename contact": "update"}
    assert {query: names(found, query)[0] for query in asked} == {
        query: f"crm__{verb}_contact" for query, verb in asked.items()
    }


def test_a_verb_no_tool_has_stands_for_its_family() -> None:
    found = searcher(tool("crm", "delete_contact"), tool("crm", "get_contact"), tool("crm", "list_deals"))
    for query, name in (("remove", "crm__delete_contact"), ("browse", "crm__list_deals")):
        results = found.search(query, 5)
        assert [hit.entry.name for hit in results.hits] == [name]
        assert (results.unknown_words, results.hits[0].matched) == ((), (query,))
    assert found.search("duplicate", 5).unknown_words == ("duplicate",)


def test_reading_is_not_answered_with_writing() -> None:
    found = searcher(tool("todo", "delete_task", "all my tasks"), tool("todo", "fetch_task", "all my tasks"))
    assert names(found, "show all my tasks") == ["todo__fetch_task", "todo__delete_task"]


@pytest.mark.parametrize("order", list(permutations(["send", "message", "slack"])))
def test_the_order_of_words_does_not_matter(order: tuple[str, ...]) -> None:
    found = searcher(tool("slack", "send_message"), tool("slack", "delete_message"), tool("mail", "send"))
    assert names(found, " ".join(order))[0] == "slack__send_message"


def test_a_word_written_apart_meets_the_word_written_together() -> None:
    found = searcher(
        tool("github", "create_issue"),
        tool("web", "fetch", "Reads pages of GitHub and others"),
        tool("x", "git"),
        tool("y", "hub"),
    )
    for query in ("github", "git hub", "GitHub", "git-hub"):
        assert {"github__create_issue", "web__fetch"} <= set(names(found, query)), query


def test_filters() -> None:
    found = searcher(
        tool("a", "read_file", annotations={"readOnlyHint": True}),
        tool("a", "write_file"),
        tool("b", "read_file", annotations={"readOnlyHint": True}),
    )
    assert names(found, "file", filters=Filters(server="a")) == ["a__read_file", "a__write_file"]
    assert names(found, "file", filters=Filters(read_only=True)) == ["a__read_file", "b__read_file"]
    assert names(found, "file", filters=Filters(read_only=False)) == ["a__write_file"]
    assert names(found, "a__read_file", filters=Filters(server="b")) == ["b__read_file"]
    assert names(found, "a__write_file", filters=Filters(read_only=True))[0] == "a__read_file"
    assert found.search("file", 9, Filters(server="a", read_only=True)).searched == 1


@given(
    entries, queries, st.sampled_from([None, "git", "slack", "nowhere"]), st.sampled_from([None, True, False])
)
def test_filters_leave_the_rest_in_order(
    made: list[Entry], query: str, server: str | None, read_only: bool | None
) -> None:
    found = searcher(*made)
    filters = Filters(server, read_only)
    left = [
        hit
        for hit in found.search(query, 50).hits
        if (server is None or hit.entry.server == server)
        and (read_only is None or hit.entry.read_only == read_only)
    ]
    assert list(found.search(query, 50, filters).hits) == left


def test_a_longer_ranking_begins_with_every_shorter_one() -> None:
    made = Index(
        tool("s", f"tool{number}", "river " * (number % 7 + 1) + "valley " * (number % 5))
        for number in range(3 * POOL)
    )
    plan = understand("river valley tool1", Filters(), made).plan
    longest = rank(made, plan, 3 * POOL)
    assert len(longest.documents) == 3 * POOL
    for depth in (0, 1, 10, POOL, POOL + 1, 2 * POOL):
        shorter = rank(made, plan, depth)
        assert (shorter.documents, shorter.scores) == (longest.documents[:depth], longest.scores[:depth])


def test_many_tools_that_begin_alike_are_all_found() -> None:
    made = searcher(*(tool("s", f"get_thing_{number}") for number in range(3 * POOL)), tool("s", "thing"))
    results = made.search("get thing", 4 * POOL)
    assert len(results.hits) == results.matching == 3 * POOL + 1
    assert results.hits[0].entry.tool.startswith("get_thing_")
