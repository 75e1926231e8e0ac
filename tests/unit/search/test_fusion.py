"""One ranking from all that the tiers say: names first, nothing arbitrary, nothing lost on the way."""

from collections.abc import Mapping
from itertools import pairwise, permutations

import pytest
from helpers.search_tools import (
    SERVERS,
    catalogs,
    filters,
    found,
    index_of,
    names,
    queries,
    searcher,
    tool,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.fusion import (
    BACKGROUND_SIMILARITY,
    HIGHEST_SCORE,
    LITERAL_SCORE,
    POOL,
    PREFIX_SCORES,
    SAME_WORDS_SCORES,
    TierScores,
    above_background,
    rank,
)
from mcpzip.search.index import Index
from mcpzip.search.query import analyze_query
from mcpzip.search.signals import Signals
from mcpzip.search.tiers import KEYWORD, LLM, SEMANTIC, TierAbsence, TierAnswer

cosines = st.floats(-1, 1, allow_nan=False)
shares = st.floats(0, 1, allow_nan=False)


@st.composite
def answers(draw: st.DrawFn, made: list[Entry]) -> list[TierAnswer | TierAbsence]:
    """What tiers elsewhere might say of these tools, and of one that is gone."""
    known = st.sampled_from([*(entry.name for entry in made), "gone__tool"])
    said: list[TierAnswer | TierAbsence] = []
    if draw(st.booleans()):
        said.append(TierAnswer(SEMANTIC, "ollama", draw(st.dictionaries(known, cosines))))
    if draw(st.booleans()):
        said.append(TierAnswer(LLM, "gemini", draw(st.dictionaries(known, shares))))
    else:
        said.append(TierAbsence(LLM, "gemini", "it took too long"))
    return said


@st.composite
def signals(draw: st.DrawFn, made: list[Entry]) -> Signals:
    names_ = st.sampled_from([*(entry.name for entry in made), "gone__tool"])
    servers = st.sampled_from(SERVERS)
    return Signals(
        boosts=draw(st.dictionaries(servers, st.floats(0.1, 5))),
        uses=draw(st.dictionaries(names_, st.floats(0, 100))),
        failing=draw(st.frozensets(servers)),
        stale=draw(st.frozensets(servers)),
    )


@given(catalogs, st.data())
def test_an_exact_name_comes_first_whatever_else_is_said(made: list[Entry], data: st.DataObject) -> None:
    assume(made)
    known, said, moved = searcher(*made), data.draw(answers(made)), data.draw(signals(made))
    for entry in made:
        first = known.search(entry.name, 3, answers=said, signals=moved).hits[0]
        assert (first.entry.name, first.score) == (entry.name, LITERAL_SCORE)
        assert known.search(entry.tool, 3, answers=said, signals=moved).hits[0].entry.tool == entry.tool


@given(catalogs, queries, filters, st.data())
def test_the_order_of_answers_does_not_matter(
    made: list[Entry], query: str, wanted: Filters, data: st.DataObject
) -> None:
    said, moved = data.draw(answers(made)), data.draw(signals(made))
    known = searcher(*made)
    results = [known.search(query, 20, wanted, order, moved) for order in [*permutations(said), tuple(said)]]
    assert results == [results[0]] * len(results)


@given(catalogs, st.text() | queries, filters, st.integers(-1, 60), st.data())
def test_scores_fall_from_at_most_one_and_ties_go_by_name(
    made: list[Entry], query: str, wanted: Filters, limit: int, data: st.DataObject
) -> None:
    said, moved = data.draw(answers(made)), data.draw(signals(made))
    results = searcher(*made).search(query, limit, wanted, said, moved)
    order = [(-hit.score, hit.entry.name) for hit in results.hits]
    assert results.needs or order == sorted(order)
    assert all(0.0 <= hit.score <= 1.0 for hit in results.hits)
    assert len(results.hits) <= max(limit, 0)
    assert results.matching <= results.searched <= len(made)


@given(catalogs, queries)
def test_words_alone_find_all_that_matches(made: list[Entry], query: str) -> None:
    results = searcher(*made).search(query, 50)
    told = [name for hit in results.hits for name in (hit.entry.name, *hit.also)]
    assert len(told) == len(set(told)) == results.matching


@given(catalogs)
def test_the_words_of_a_name_come_before_all_but_the_name(made: list[Entry]) -> None:
    known = searcher(*made)
    for entry in made:
        first = known.search(" ".join(entry.tool.split("_")), 1).hits[0].entry
        names = (entry.tool, first.tool, f"{first.server}_{first.tool}")
        asked, *found = ({term.rstrip("s") for term in spelled(name) - {"the", "who"}} for name in names)
        assert asked in found


def spelled(name: str) -> set[str]:
    """The words of ``name``, in which GitHub is "git hub", as it may be written."""
    return set(name.replace("-", "_").replace("github", "git_hub").split("_"))


def ranked(
    index: Index, query: str, depth: int, tier_scores: TierScores | None = None
) -> list[tuple[str, float]]:
    ranking = rank(index, analyze_query(query, Filters(), index).plan, depth, tier_scores or TierScores())
    return [(index.document(each.document).name, each.score) for each in ranking.documents]


LARGE = [
    tool("s", f"tool{number}", "river " * (number % 7 + 1) + "valley " * (number % 5))
    for number in range(3 * POOL)
]
MANY_NAMED = [
    tool("s", f"list_{'river_' * (n % 2)}{n}", "river " * (n % 9) + "x " * (n % 7)) for n in range(200)
]


@pytest.mark.parametrize(
    ("made", "query"),
    [(LARGE, "river valley tool1"), (MANY_NAMED, "show the river"), (MANY_NAMED, "river 7")],
)
@pytest.mark.parametrize("tier_scores", [False, True])
def test_a_longer_ranking_begins_with_every_shorter_one(
    made: list[Entry], query: str, tier_scores: bool
) -> None:
    index = index_of(*made)
    said = TierScores(
        {number: (number * 37 % 101) / 101 for number in range(len(made))} if tier_scores else {}
    )
    longest = ranked(index, query, len(made), said)
    assert len(longest) > 2 * POOL
    for depth in (0, 1, 10, POOL - 1, POOL, POOL + 1, 2 * POOL):
        assert ranked(index, query, depth, said) == longest[:depth], depth


def test_a_longer_list_of_hits_begins_with_every_shorter_one() -> None:
    known = searcher(*MANY_NAMED)
    longest = found(known, "show the river", 200)
    assert all(found(known, "show the river", limit) == longest[:limit] for limit in (1, 5, 49, 50, 51, 99))


def test_many_tools_that_begin_alike_are_all_found() -> None:
    made = searcher(*(tool("s", f"get_thing_{number}") for number in range(3 * POOL)), tool("s", "thing"))
    results = made.search("get thing", 4 * POOL)
    assert len(results.hits) == results.matching == 3 * POOL + 1
    assert results.hits[0].entry.tool.startswith("get_thing_")


CHATS = [
    tool("slack", "send_message", "Send a message to a channel"),
    tool("slack", "delete_message", "Delete a message"),
    tool("slack", "send_message_later", "At a given time"),
    tool("mail", "compose", "Write to somebody"),
    tool("maps", "route", "The way between two places"),
]


def said_of(scores: Mapping[str, float], tier: str = SEMANTIC) -> TierAnswer:
    return TierAnswer(tier, "test", scores)


def test_each_way_of_naming_a_tool_has_its_scores() -> None:
    known = searcher(*CHATS)
    assert known.search("slack__send_message", 1).hits[0].score == LITERAL_SCORE
    assert known.search("send_message", 1).hits[0].score == LITERAL_SCORE
    assert known.search("message, send", 1).hits[0].score == SAME_WORDS_SCORES[1]
    assert known.search("please send the message", 1).hits[0].score in SAME_WORDS_SCORES
    begun = known.search("slack send", 2).hits
    assert [hit.entry.tool for hit in begun] == ["send_message", "send_message_later"]
    assert all(PREFIX_SCORES[0] <= hit.score <= PREFIX_SCORES[1] for hit in begun)
    assert known.search("a message to a channel", 1).hits[0].score <= HIGHEST_SCORE


def test_no_similarity_pushes_a_name_down() -> None:
    known = searcher(*CHATS)
    against = said_of({"slack__send_message": -1.0, "maps__route": 1.0, "slack__delete_message": 1.0})
    chosen = said_of({"maps__route": 1.0}, LLM)
    for query in (
        "slack__send_message",
        "send message",
        "slack send message",
        "SendMessage",
        "slack send mess",
    ):
        assert names(known.search(query, 1, answers=[against, chosen])) == ["slack__send_message"], query


def test_where_words_say_nothing_the_meaning_is_all_there_is() -> None:
    known = searcher(*CHATS)
    results = known.search(
        "directions home", 3, answers=[said_of({"maps__route": 0.7, "mail__compose": 0.1})]
    )
    first = results.hits[0]
    assert (first.entry.name, first.tier, first.matched) == ("maps__route", SEMANTIC, ())
    assert first.similarity is not None
    assert results.unknown_words == ("directions", "home")
    assert results.tiers == (KEYWORD, "semantic (test)")


def test_words_and_meaning_are_weighed() -> None:
    known = searcher(*CHATS)
    level = dict.fromkeys((entry.name for entry in CHATS), 0.15)
    near = level | {"mail__compose": 0.8}
    assert names(known.search("message somebody", 1, answers=[said_of(near)])) == ["mail__compose"]
    assert names(known.search("delete a message", 1, answers=[said_of(near)])) == ["slack__delete_message"]


def test_of_equal_tools_that_of_the_nearer_server_comes_first() -> None:
    index = index_of(tool("a", "send_mail"), tool("b", "send_mail"), tool("c", "send_mail"))
    plan = analyze_query("zebra", Filters(), index).plan
    same = dict.fromkeys(range(3), 0.5)

    def scores(servers: Mapping[str, float]) -> dict[str, float]:
        ranking = rank(index, plan, 3, TierScores(similarities=same, servers=servers))
        return {index.document(each.document).name: each.score for each in ranking.documents}

    plain = scores({})
    assert len(set(plain.values())) == 1
    far, near = BACKGROUND_SIMILARITY - 0.2, BACKGROUND_SIMILARITY + 0.2
    moved = scores({"a": BACKGROUND_SIMILARITY, "b": far, "c": near})
    assert list(moved) == ["c__send_mail", "a__send_mail", "b__send_mail"]
    assert moved["a__send_mail"] == plain["a__send_mail"]


def test_a_choice_of_a_model_weighs_more_than_words() -> None:
    known = searcher(*CHATS)
    results = known.search("a message to a channel", 5, answers=[said_of({"mail__compose": 1.0}, LLM)])
    assert (results.hits[0].entry.name, results.hits[0].tier) == ("mail__compose", LLM)
    assert results.tiers == (KEYWORD, "llm (test)")


def test_a_choice_is_not_lost_among_many_that_have_the_words() -> None:
    crowd = [tool("crowd", f"t{number}", "river valley " * 3) for number in range(3 * POOL)]
    others = [tool("other", f"u{number}") for number in range(20 * POOL)]
    known = searcher(*crowd, *others, tool("maps", "route", "The way between two places"))
    for share in (1.0, 0.6):
        results = known.search("river valley", 5, answers=[said_of({"maps__route": share}, LLM)])
        assert "maps__route" in names(results), share


def test_a_threshold_leaves_out_what_has_neither_words_nor_meaning() -> None:
    known = Searcher(threshold=0.5)
    known.index(CHATS, "1")
    near = {entry.name: 0.2 for entry in CHATS} | {"maps__route": 0.6, "slack__delete_message": 0.1}
    results = known.search("message", 10, answers=[said_of(near)])
    assert set(names(results)) == {
        "maps__route",
        "slack__send_message",
        "slack__delete_message",
        "slack__send_message_later",
    }


def test_what_is_said_of_a_tool_that_is_gone_is_passed_over() -> None:
    known = searcher(*CHATS)
    gone = [said_of({"gone__tool": 1.0, "send_message": 1.0}), said_of({"gone__tool": 1.0}, LLM)]
    assert names(known.search("way", 5, answers=gone)) == ["maps__route"]


def test_an_absence_is_told() -> None:
    absent = TierAbsence(LLM, "gemini", "it took too long")
    results = searcher(*CHATS).search("message", 5, answers=[absent])
    assert (results.absent, results.tiers) == ((absent,), (KEYWORD,))


@given(st.dictionaries(st.integers(0, 20), cosines, min_size=1))
def test_what_is_common_to_all_is_no_similarity(similarities: dict[int, float]) -> None:
    moved = above_background(similarities)
    assert moved.keys() == similarities.keys()
    assert min(moved.values()) <= max(BACKGROUND_SIMILARITY, min(similarities.values())) + 1e-9
    assert max(moved.values()) <= 1 + 1e-9
    order = sorted(similarities, key=similarities.__getitem__)
    assert all(moved[one] <= moved[other] for one, other in pairwise(order))


def test_the_background_of_another_model_is_taken_off() -> None:
    assert above_background({0: 0.7, 1: 0.85, 2: 1.0}) == pytest.approx(
        {0: BACKGROUND_SIMILARITY, 1: 0.575, 2: 1.0}
    )
    assert above_background({0: 1.0}) == {0: BACKGROUND_SIMILARITY}
    assert above_background({}) == {}


def test_a_verb_that_contradicts_takes_no_more_than_there_is() -> None:
    entry = tool("the", "delete_hub")
    said = [TierAnswer(SEMANTIC, "ollama", {entry.name: 0.0})]
    (hit,) = searcher(entry).search("GET", 5, Filters(), said).hits
    assert hit.score == 0.0
