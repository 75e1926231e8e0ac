"""Several needs in one request: where it is cut, and where it is not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.search.query_split import MAX_NEEDS, halves, is_statement, split_query
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
        ("pull the sales of May and chart them by week", ("pull the sales of May", "chart them by week")),
        ("Book the flight before you brew the coffee", ("Book the flight", "you brew the coffee")),
        ("What did Oslo sell, and who bought the tea?", ("What did Oslo sell", "who bought the tea?")),
        ("pay the bill but check the balance first", ("pay the bill", "check the balance first")),
        (
            "Pay the bill. Don't forget to send the receipt to Ann",
            ("Pay the bill.", "Don't forget to send the receipt to Ann"),
        ),
        (
            "The mail has an invoice. Save it to the folder. Then post it to the team.",
            ("The mail has an invoice. Save it to the folder.", "Then post it to the team."),
        ),
        (
            "In HubSpot, rename the contact, then send the link",
            ("In HubSpot rename the contact", "send the link"),
        ),
        (
            "Who owns the invoice, and what did the team say?",
            ("Who owns the invoice", "what did the team say?"),
        ),
        ("check the door log so that I can call the guard", ("check the door log", "I can call the guard")),
        (
            "We met Dr. Smith today. I need to file the notes",
            ("We met Dr. Smith today.", "I need to file the notes"),
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
        "sort the rows so that newest entries lead",
        "show the notes of next week",
        "write to Mr. Smith",
        "the room of the team and of the guests",
        "unstage the changes but keep my edits",
        "remove the comment, but leave the value of the cell",
        "The bucket of photos is empty, get rid of it",
        "Nobody needs the job any more, nor its history. Delete it permanently.",
        "How many open tickets are there per group? Only the counts from the table, no single tickets.",
        "Show the members of the list. First 50 members, please. Don't change the list.",
        "which machines make up the cluster, and are they all ready?",
        "In the small window, please measure the angle",
        "show the latest runs, at most 20 of the runs",
        "archive the stage but please don't delete the notes in it",
        "archive the stage BUT DON’T delete the notes in it",
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


@pytest.mark.parametrize(
    ("part", "pairs"),
    [
        ("list users and unpaid invoices", [("list users", "list unpaid invoices")]),
        ("the weather in Oslo, exchange rates", [("the weather in Oslo", "exchange rates")]),
        ("read mails and list users", [("read mails", "list users")]),
        (
            "read the notes, mails and logs",
            [("read the notes", "read mails and logs"), ("read the notes, mails", "read logs")],
        ),
        ("convert the positions of all the houses on the map to an address and plan", []),
        ("users and groups", []),
        ("", []),
    ],
)
def test_the_halves_of_a_list_have_its_verb(part: str, pairs: list[tuple[str, str]]) -> None:
    assert list(halves(part)) == pairs


@given(st.text() | pieces)
def test_halves_say_something(part: str) -> None:
    for pair in halves(part):
        assert all(len(words(half)) > 1 for half in pair)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("We have a deadline on Friday.", True),
        ("The budget is small", True),
        ("I need to send a mail", False),
        ("what are the deadlines", False),
        ("send the budget", False),
    ],
)
def test_a_statement_asks_for_nothing(part: str, says: bool) -> None:
    assert is_statement(part) == says


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
        assert len(list(halves(text))) <= MAX_NEEDS
