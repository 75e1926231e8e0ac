"""Paths of files in a request: what they are searched as, and the needs to write files that they imply."""

import pytest
from helpers.search_tools import names, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.file_paths import only_says_where, without_paths, written_files


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("read /var/log/app.log", "read file"),
        ("open ~/notes/trip.md.", "open file."),
        (r"open C:\Users\Ann\cv.docx", "open word document"),
        ("compare ./a/b.py, ../c.xyz", "compare file, file"),
        ("plot data/may/sales.xlsx by week", "plot excel file by week"),
        ("draw /x/a.PNG; play '/y/b.mp3'", "draw image; play 'audio file'"),
        ("parse config=/etc/app.toml", "parse config=file"),
    ],
)
def test_a_path_is_its_kind(text: str, searched: str) -> None:
    assert without_paths(text) == searched


@pytest.mark.parametrize(
    "text",
    [
        "update package.json",  # a tool may be called after it
        "add Next.js and socket.io to vercel/ai",
        "and/or 24/7, 3 requests/day, 1.5/2.5",
        "fetch https://example.org/a/b.html and www.example.org",
        "ask ann@example.org",
        "GET /users/list, then /v1.2/items",
        "list the folder /srv/music",
        "and then...",
    ],
)
def test_what_is_no_path_stays(text: str) -> None:
    assert (without_paths(text), written_files(text)) == (text, ())


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("Plan a trip and save it to /notes/trip.md", ("write file",)),
        ("Generate a report of the outage in report.pdf", ("write pdf",)),
        (
            "Save both as /x/a.xlsx and write the rest into /x/b.pptx",
            ("write excel file", "write powerpoint presentation"),
        ),
        ("draft an intro at /x/a.md and another at /x/b.txt", ("write file",)),
        ("Read the sales in /x/sales.csv, draw them and save it in /x/sales.png", ("write image",)),
        ("Create a note. What stands in /x/a.md?", ()),
        ("read the list in /x/a.csv", ()),
        ("insert three blank rows below row 4 in cash.xlsx", ()),  # the file is there already
        ("Add a chapter to /notes/trip.md", ()),
        ("Find the chapter and put it into /notes/trip.md", ("write file",)),
        ("Save the selection of the residues to /x/a.pdb", ()),  # asks for nothing but that
        ("Please store the current workflow in Comfy as shop.json", ()),
        ("Save the results to /x/a.csv", ("write csv file",)),
        ("The transaction is signed and saved in /x/tx.txt, so send it", ()),  # is there already
        ("A page about its history, saved at /x/a.html", ("write file",)),
        ("Bring it to the new version with the values in /x/a.yaml", ()),
        ("Find the residues. Save the selection to /x/a.pdb", ("write file",)),
        ("create /x/a.md", ()),  # says itself that it is about a file
        ("convert /x/a.docx to PDF", ()),
    ],
)
def test_files_that_are_written(text: str, needs: tuple[str, ...]) -> None:
    assert written_files(text) == needs


@pytest.mark.parametrize(
    ("part", "only"),
    [
        ("and save it to /notes/trip.md", True),
        ("write the final report as Markdown to /x/a.md.", True),
        ("save the code to /x/a.py", False),
        ("save it to the archive", False),
        ("", False),
    ],
)
def test_a_part_that_only_says_where(part: str, only: bool) -> None:
    assert only_says_where(part) is only


FILES = searcher(
    tool("files", "read_file", "Read the contents of a file"),
    tool("files", "write_file", "Create a new file or overwrite an existing one"),
    tool("rail", "find_trains", "Find trains between two cities"),
    tool("mark", "to_markdown", "Convert a web page to Markdown"),
    tool("tracker", "create_report", "Create a report of bugs"),
)


def test_the_tool_that_writes_is_found_beside_the_one_that_makes() -> None:
    results = FILES.search("Find trains from Lyon to Nice and save them as Markdown in /notes/trip.md", 2)
    assert set(names(results)) == {"rail__find_trains", "files__write_file"}
    assert [need for need, _ in results.needs] == ["Find trains from Lyon to Nice", "write file"]


def test_it_is_found_for_one_sentence_too() -> None:
    results = FILES.search("Create a report of the bugs at /notes/bugs.md", 2)
    assert set(names(results)) == {"tracker__create_report", "files__write_file"}


def test_the_names_of_a_path_find_no_tool() -> None:
    results = FILES.search("read /markdown/trains/report.md", 1)
    assert names(results) == ["files__read_file"]
    assert (results.unknown_words, results.corrected) == ((), ())


def test_a_path_alone_is_searched_as_a_file() -> None:
    assert set(names(FILES.search("/markdown/trains/report.md", 2))) == {
        "files__read_file",
        "files__write_file",
    }


@given(st.text(st.sampled_from("ab ./\\~:-.md\n"), max_size=60))
def test_any_text(text: str) -> None:
    searched = without_paths(text)
    assert searched == text or len(written_files(text)) <= 1
    assert only_says_where(text) in (True, False)
    assert without_paths(searched).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "unit", ["a", "a/", "a.", "a. ", "/a.b", "~/", "a.md/", "save to a.md ", "\\a", "a-", "aé"]
)
def test_long_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert len(without_paths(text)) <= 20_000 * 4  # a polynomial would take minutes
    assert len(written_files(text)) <= 1
    assert only_says_where(text) in (True, False)
