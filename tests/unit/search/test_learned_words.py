"""Words that led to a tool lift it, never over one whose name is asked for; and which words are learned."""

import string
from collections.abc import Mapping

import pytest
from helpers.search_tools import catalogs, concepts, filters, names, queries, searcher, table_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.fusion import HIGHEST_SCORE
from mcpzip.search.learned_words import LONGEST_QUERY, MAX_BONUS, MOST_TOOLS, WORDS_OF_QUERY, LearnedWords
from mcpzip.search.query import analyze_query
from mcpzip.search.semantic import local_table
from mcpzip.search.semantic.table import Table
from mcpzip.search.signals import Signals

TERMS = ["get", "list", "delet", "send", "user", "messag", "git", "file", "mail", "who", "zebra", "天气", ""]
weights = st.floats() | st.floats(0, 10)


@st.composite
def memories(draw: st.DrawFn, made: list[Entry]) -> dict[str, dict[str, float]]:
    """What anybody might have written there."""
    known = st.sampled_from([*(entry.name for entry in made), "gone__tool", "slack", ""])
    return draw(st.dictionaries(known, st.dictionaries(st.sampled_from(TERMS), weights, max_size=9)))


def signals(memory: Mapping[str, Mapping[str, float]]) -> Signals:
    return Signals(words=LearnedWords(memory))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    groups = ("get list", "delete remove", "send mail", "user users who", "git hub github", "file fil")
    return table_of(tmp_path_factory.mktemp("table"), concepts(*groups))


@pytest.mark.parametrize("semantic", [False, True])
@given(data=st.data())
def test_no_memory_moves_a_tool_before_one_whose_name_is_asked_for(
    semantic: bool, data: st.DataObject, table: Table
) -> None:
    made = data.draw(catalogs)
    asked = [text for entry in made for text in (entry.name, entry.tool, entry.tool.replace("_", " "))]
    query = data.draw(st.sampled_from(asked) | queries if asked else queries)
    wanted, memory = data.draw(filters), data.draw(memories(made))
    known = searcher(*made, table=table if semantic else None)
    without = known.search(query, 40, wanted)
    results = known.search(query, 40, wanted, (), signals(memory))
    if not without.needs:  # of several needs, each has its own first tool
        named = [hit for hit in without.hits if hit.score > HIGHEST_SCORE]
        assert [(hit.entry, hit.score) for hit in results.hits[: len(named)]] == [
            (hit.entry, hit.score) for hit in named
        ]
        assert all(hit.score <= HIGHEST_SCORE for hit in results.hits[len(named) :])
        order = [(-hit.score, hit.entry.name) for hit in results.hits]
        assert results.needs or order == sorted(order)
    assert {hit.entry.name for hit in results.hits} <= {entry.name for entry in made}
    assert all(hit.score <= 1 and 0 <= hit.learned <= MAX_BONUS for hit in results.hits)
    turned = {name: dict(reversed(words.items())) for name, words in reversed(memory.items())}
    assert known.search(query, 40, wanted, (), signals(turned)) == results
    if not memory:
        assert results == without


@given(catalogs, queries, st.data())
def test_what_is_gained_is_bounded_whatever_is_remembered(
    made: list[Entry], query: str, data: st.DataObject
) -> None:
    index = searcher(*made)._catalog.index
    plan = analyze_query(query, Filters(), index).plan
    bonuses = LearnedWords(data.draw(memories(made))).bonuses(index, plan)
    assert len(bonuses) <= MOST_TOOLS
    assert all(0 <= bonus <= MAX_BONUS for bonus in bonuses.values())


SLACK = tool("slack", "post_message", "Send a message to a channel")
MAIL = tool("mail", "send_mail", "Send a message to a person")
TICKETS = [tool("tickets", f"tool_{n}", f"Ticket {n}: message board channel person") for n in range(30)]


@pytest.fixture(scope="module")
def offices() -> Searcher:
    return searcher(SLACK, MAIL, *TICKETS, table=local_table())


def test_a_tool_that_was_found_by_other_words_is_found_by_them(offices: Searcher) -> None:
    query = "feed the hamster at noon"
    assert names(offices.search(query, 1)) != ["tickets__tool_7"]
    learned = signals({"tickets__tool_7": {"feed": 2.0, "hamster": 2.0, "noon": 2.0}})
    hits = offices.search(query, 3, signals=learned).hits
    assert hits[0].entry.name == "tickets__tool_7"
    assert 0 < hits[0].learned < MAX_BONUS
    assert hits[1].learned == 0
    # With other words beside them too, but not by one of many.
    assert names(offices.search("feed hamster", 1, signals=learned)) == ["tickets__tool_7"]
    chance = "feed the other server and measure how long that takes"
    assert offices.search(chance, 9, signals=learned) == offices.search(chance, 9)


def test_words_alone_have_a_memory_of_the_words_of_tools() -> None:
    known = searcher(SLACK, MAIL)
    query = "a mesage to a person in the channel"
    assert names(known.search(query, 2)) == ["slack__post_message", "mail__send_mail"]
    learned = signals({"mail__send_mail": {"messag": 3.0, "person": 3.0}, "gone__tool": {"gone": 1.0}})
    assert names(known.search(query, 2, signals=learned)) == ["mail__send_mail", "slack__post_message"]
    assert names(known.search("river", 2, signals=learned)) == []


def test_a_word_that_led_to_many_tools_says_nothing(offices: Searcher) -> None:
    learned = signals({entry.name: {"feed": 3.0, "hamster": 3.0} for entry in [SLACK, *TICKETS[:5]]})
    query = "feed hamster"
    assert offices.search(query, 9, signals=learned) == offices.search(query, 9)


def test_what_decayed_counts_less(offices: Searcher) -> None:
    words = {"tickets__tool_7": {"feed": 2.0, "hamster": 2.0}}

    def gained(decay: float) -> float:
        learned = Signals(words=LearnedWords(words, lambda name: decay))
        return offices.search("feed hamster", 1, signals=learned).hits[0].learned

    assert gained(1.0) > gained(0.5) > gained(0.01) == 0


def test_who_may_not_see_a_tool_does_not_find_it_by_its_words(offices: Searcher) -> None:
    learned = signals({"tickets__tool_7": {"feed": 9.0, "hamster": 9.0}, "hidden__tool": {"feed": 9.0}})
    part = offices.restricted([SLACK, MAIL], "part")
    found = part.search("feed hamster", 9, signals=learned)
    assert found == part.search("feed hamster", 9)
    only = offices.search("feed hamster", 9, Filters(server="slack"), signals=learned)
    assert set(names(only)) <= {"slack__post_message"}


def test_a_threshold_holds_for_learned_words_too() -> None:
    strict = Searcher(local_table(), 0.99)
    strict.index((SLACK, MAIL), "1")
    learned = signals({"slack__post_message": {"feed": 9.0, "hamster": 9.0}})
    assert strict.search("feed hamster", 9, signals=learned).hits == ()


def test_a_wrong_memory_makes_nothing_sure(offices: Searcher) -> None:
    """Confidence is of what tools and requests say: to be first by learned words alone is to be weak."""
    query = "a channel"
    assert offices.search(query, 1).quality != "weak"
    wrong = signals({"tickets__tool_9": {"channel": 1e8}})
    results = offices.search(query, 1, signals=wrong)
    assert (names(results), results.quality) == (["tickets__tool_9"], "weak")
    alone = searcher(SLACK, table=local_table())
    learned = signals({"slack__post_message": {"feed": 1e8, "hamster": 1e8}})
    lifted = alone.search("feed hamster", 1, signals=learned)
    assert lifted.hits[0].learned > 0.2
    assert (lifted.quality, alone.search("feed hamster", 1).quality) == ("weak", "weak")
    unsure = offices.search("feed hamster", 1)
    learned = signals({unsure.hits[0].entry.name: {"feed": 1e8, "hamster": 1e8}})
    assert offices.search("feed hamster", 1, signals=learned).quality == unsure.quality


def test_an_answer_is_cached_for_one_memory_only(offices: Searcher) -> None:
    query, learned = "feed hamster", signals({"tickets__tool_7": {"feed": 1.0, "hamster": 1.0}})
    for _ in range(2):
        assert names(offices.search(query, 1)) != ["tickets__tool_7"]
        assert names(offices.search(query, 1, signals=learned)) == ["tickets__tool_7"]


# --- what is learned ----------------------------------------------------------------------------------------


def learned_from(known: Searcher, query: str) -> tuple[str, ...]:
    return known.learnable(known.search(query, 5), query)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Ping my colleagues about the lunch", "ping colleagu lunch"),
        ("send a mesage to the channel", "send messag channel"),
        ("send messages, then other MESSAGES", "send messag other"),
        ("Email Ingrid at ing@example.org", "email"),
        ("send it to Slack for Apollo", "send slack"),
        ("the report of 2024-10-03 with 42 rows", "report row"),
        ("open /home/ingrid/secret.txt or C:\\secret", "open file"),
        ('send "hello dear world" to the channel', "send channel"),
        ("send 'hello dear world' and `rm -rf`", "send"),
        ("send “hello dear world", "send"),
        ("the key sk-live-abcdef and hunter2", "key"),
        ("token=secret user:secret some_secret", ""),
        ("qwrtzplk xyzzyplugh", ""),
        ("server:slack send", "send"),
        ("Nachricht senden", "messag send"),
        ("send " + "abcdefghij" * 3, "send"),
    ],
)
def test_only_words_that_are_no_values_are_learned(offices: Searcher, query: str, terms: str) -> None:
    assert list(learned_from(offices, query)) == terms.split()


def test_without_a_table_only_words_of_tools_are_learned() -> None:
    known = searcher(SLACK, MAIL)
    assert learned_from(known, "send mesage colleagues") == ("send", "messag")


def test_of_a_long_query_few_words_are_learned_and_of_a_document_none(offices: Searcher) -> None:
    many = "ping lunch table garden window door river mountain paper pencil music color bread water"
    assert len(learned_from(offices, many)) == WORDS_OF_QUERY
    assert learned_from(offices, "send " * LONGEST_QUERY) == ()


values = st.text(string.ascii_letters + string.digits + "@/._:=-+é", min_size=4, max_size=40).filter(
    lambda text: any(each in text for each in "0123456789@/=:_") and text.strip(".:-+=") == text
)


@given(values, st.sampled_from(["send {} to the channel", "tell the channel: '{}'", 'the "{}" in the file']))
def test_no_value_is_learned(value: str, sentence: str) -> None:
    terms = learned_from(WITH_TABLE, sentence.format(value))
    assert set(terms) <= set(learned_from(WITH_TABLE, sentence.format("")))


@given(st.text(max_size=200))
def test_what_is_learned_has_letters_only(query: str) -> None:
    terms = learned_from(WITH_TABLE, query)
    assert len(terms) <= WORDS_OF_QUERY
    assert all(term.isalpha() and len(term) <= 24 for term in terms)


WITH_TABLE = searcher(SLACK, MAIL, table=local_table())
