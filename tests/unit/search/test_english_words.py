"""Misspelled words that mean a word which no tool has."""

from pathlib import Path

import pytest
from helpers.search_tools import concepts, found, index_of, searcher, table_of, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpzip.search import Filters
from mcpzip.search.english_words import MIN_LENGTH, EnglishWords
from mcpzip.search.query import QueryAnalysis, analyze_query
from mcpzip.search.semantic import local_table
from mcpzip.search.vocabulary import EditDistance

SHIPPED = EnglishWords(local_table())
MAIL = index_of(
    tool("mail", "send_message", "Send a message to a person"),
    tool("mail", "delete_message", "Delete a message for ever"),
    tool("files", "read_file", "Read a file"),
)


def read(query: str) -> QueryAnalysis:
    return analyze_query(query, Filters(), MAIL, SHIPPED)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("colleauges", "colleagues"),
        ("somebdy", "somebody"),
        ("yesteday", "yesterday"),
        ("bught", "bought"),
        ("differnt", "different"),
        ("tomorow", "tomorrow"),
        ("inovice", "invoice"),
        ("knterview", "interview"),
        ("cowrokers", "coworker"),
        ("saxopones", "saxophone"),
    ],
)
def test_the_likeliest_word_is_meant(written: str, meant: str) -> None:
    assert written not in SHIPPED
    assert SHIPPED.nearest(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [("litters", "litter"), ("copiers", "copier"), ("reprints", "reprint"), ("saxophones", "saxophone")],
)
def test_a_plural_is_no_typo_of_another_word(written: str, meant: str) -> None:
    assert written not in SHIPPED
    assert SHIPPED.nearest(written) == meant


@pytest.mark.parametrize("word", ["", "hte", "qqqqqq", "x1y2z3", "größen", "a" * 30, "天气天气天气"])
def test_nothing_is_near(word: str) -> None:
    assert SHIPPED.nearest(word) is None


@given(st.text("aeinorst", min_size=MIN_LENGTH, max_size=9))
@settings(max_examples=60)
def test_what_is_meant_is_a_word_one_edit_away(word: str) -> None:
    meant = SHIPPED.nearest(word)
    assert meant == SHIPPED.nearest(word)
    assert meant is None or meant in SHIPPED
    assert meant is None or min(map(EditDistance(meant).distance, (word, word.removesuffix("s")))) <= 1


def test_of_equal_typos_the_commoner_word_is_meant(tmp_path: Path) -> None:
    for words in ("stales stiles", "stiles stales"):
        table = EnglishWords(table_of(tmp_path, concepts(*words.split())))
        assert table.nearest("stles") == words.split()[0]
        assert table.nearest("stsles") == "stales"  # s lies beside a


def test_many_words_are_forgotten_and_found_again() -> None:
    words = EnglishWords(local_table())
    letters = "bcdfghjklmnpqrstvwxz"
    assert not any(words.nearest(f"{a}{b}qqqq") for a in letters for b in letters for _ in range(2))
    assert words.nearest("somebdy") == "somebody"


def test_a_misspelled_word_of_no_tool_keeps_its_meaning() -> None:
    analysis = read("ping my colleauges")
    assert analysis.corrected == (("colleauges", "colleagues"),)
    assert analysis.plan.embedding_words == ("ping", "my", "colleagues")
    assert "colleauges" in analysis.unknown


def test_a_misspelled_form_of_a_tools_word_is_that_word() -> None:
    analysis = read("messagin a person")
    assert analysis.corrected == (("messagin", "messaging"),)
    assert analysis.unknown == ()
    terms = {term for group in analysis.plan.groups for term in group.terms}
    assert terms == {MAIL.terms["messag"], MAIL.terms["person"]}


def test_a_tools_word_comes_first_if_it_is_likely() -> None:
    assert read("mesage").corrected == (("mesage", "message"),)


def test_another_form_of_a_word_is_no_misspelling() -> None:
    word = "saxophones"
    assert word not in SHIPPED
    assert SHIPPED.nearest(word) == "saxophone"
    analysis = read(f"my {word}")
    assert analysis.corrected == ()
    assert analysis.unknown == (word,)
    assert analysis.plan.embedding_words == ("my", "saxophone")


def test_names_are_not_corrected() -> None:
    assert SHIPPED.nearest("haidian")
    assert read("send a message to Haidian").corrected == ()
    assert read("send a message to haidian").corrected != ()
    assert read("Somebdy must read this").corrected == (("somebdy", "somebody"),)


def test_a_name_is_not_read_as_another_word_of_tools() -> None:
    index = index_of(
        tool("figma", "markup", "The markup of a page of the notebook"),
        tool("confluence", "get_page", "A page"),
    )

    def corrected(text: str) -> tuple[tuple[str, str], ...]:
        return analyze_query(text, Filters(), index, SHIPPED).corrected

    assert corrected("forget about Markus now") == ()
    assert corrected("forget about markus now") == (("markus", "marks"),)
    assert corrected("show the Makrup now") == (("makrup", "markup"),)  # a common typo
    assert corrected("open it in Confluance now") == (("confluance", "confluence"),)  # a server's name
    assert corrected("open the Nutebook now") == (("nutebook", "notebook"),)  # too long for another name


def test_short_requests_are_no_titles() -> None:
    assert read("Ping Haidian Keller").corrected == ()
    assert read("ping Haidian Keller now").corrected == ()


def test_a_name_after_an_address_is_seen() -> None:
    assert read("write to anna@x.de. Somebdy must read this").corrected == (("somebdy", "somebody"),)


def test_two_words_of_tools_written_as_one_are_two() -> None:
    index = index_of(tool("a", "get_date", "Get the date"), tool("a", "set_user", "Set the user"))
    for written, meant in (("getdate", "get date"), ("setuser", "set user")):
        assert analyze_query(f"now {written}", Filters(), index, SHIPPED).corrected == ((written, meant),)


def test_only_a_dozen_words_are_corrected() -> None:
    many = "colleauges somebdy yesteday bught differnt tomorow inovice knterview saxopones cowrokers accuont "
    assert len(read(many + "freind recieve seperate tuesdya occured").corrected) == 12


def test_titles_have_no_names() -> None:
    assert read("Tell Somebdy Something Tomorow").corrected == (
        ("somebdy", "somebody"),
        ("tomorow", "tomorrow"),
    )


def test_two_typos_in_a_request_cost_it_nothing() -> None:
    tools = [
        tool("slack", "post_message", "Post a message to a channel of the team"),
        tool("calendar", "list_events", "List the events of a day"),
        tool("weather", "forecast", "The weather of the next days"),
        tool("shop", "create_order", "Order a product"),
        tool("trips", "book_flight", "Book a flight"),
    ]
    whole = searcher(*tools, table=local_table())
    for right, wrong in (
        ("inform my coworkers about lunch", "infrom my cowrokers about lunch"),
        ("will we need umbrellas tomorrow", "will we need umberllas tomorow"),
        ("purchase a keyboard", "purchse a keybaord"),
    ):
        assert found(whole, right)[0] == found(whole, wrong)[0]
