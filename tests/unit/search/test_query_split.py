"""Several needs in one request: where it is cut, and where it is not."""

import pytest
from helpers.search_tools import names, searcher, tool
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.search.query_split import MAX_NEEDS, split_query
from mcpzip.search.tokenizer import term_of, words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("read the file and post it to Slack", ("read the file", "post it to Slack")),
        ("list the commits, then send a mail to the team", ("list the commits", "send a mail to the team")),
        (
            "Create an issue for the bug. Send the link to the channel.",
            ("Create an issue for the bug.", "Send the link to the channel."),
        ),
        ("- read the log\n- delete the file", ("read the log", "delete the file")),
        ("1. read the log\n2. delete the file", ("read the log", "delete the file")),
        ("find the invoice; send it to the bank", ("find the invoice", "send it to the bank")),
        (
            "search the web, read the page, and write a note",
            ("search the web", "read the page", "write a note"),
        ),
    ],
)
def test_several(text: str, parts: tuple[str, ...]) -> None:
    cut = tuple(part.removeprefix("- ").removeprefix("1. ") for part in split_query(text))
    assert cut == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "send message slack",
        "read and write files",
        "users and groups",
        "list tables and columns of the database",
        "find and replace text",
        "then",
        "send it and then",
        "help me manage my todo list",
        "Get the weather for St. Louis",
        "copy a.txt, b.txt and c.txt",
        "post something to the team",
        " and ".join(["send a message"] * (MAX_NEEDS + 1)),
    ],
)
def test_one(text: str) -> None:
    assert split_query(text) == ()


pieces = st.lists(
    st.sampled_from(
        [
            "send",
            "read",
            "file",
            "the",
            "mail",
            "and",
            "then",
            ",",
            ", ",
            ". ",
            ";",
            "\n",
            " ",
            "A",
            "finally",
        ]
    ),
    max_size=14,
).map(" ".join)


@given(st.text() | pieces)
@example("A. \n")
def test_never_raises_and_gives_no_or_several(text: str) -> None:
    assert len(split_query(text)) in {0, *range(2, MAX_NEEDS + 1)}


JOINTS = {term_of(word) for word in ("and", "then", "afterwards", "after", "that", "finally", "next", "also")}


@given(pieces)
def test_the_parts_say_what_the_text_says(text: str) -> None:
    parts = split_query(text)
    if parts:
        said = [term for part in parts for _, term in words(part) if term not in JOINTS]
        assert said == [term for _, term in words(text) if term not in JOINTS]


@given(st.text() | pieces)
def test_every_part_says_something_and_is_one_need(text: str) -> None:
    for part in split_query(text):
        assert words(part)
        assert part.strip() == part


@pytest.mark.parametrize(
    "unit", ["a", " ", ", ", "and ", " and send x", ". ", ".A", "\n", "; ", "- ", "then "]
)
def test_a_long_text_is_cut_in_one_go(unit: str) -> None:
    # Were this quadratic, it would take half a minute: so it was once, for white space.
    for text in (unit * 10_000, "a" + unit * 10_000 + "b", "send a mail," + unit * 10_000 + " and read it"):
        assert len(split_query(text)) <= MAX_NEEDS


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
