"""What is checked of the requests that the table of word vectors learns from."""

import json
from pathlib import Path

import pytest

from tools.semantic import check_requests
from tools.semantic.pairs import read_file

GOOD = """# till
list_sales\tLists what was sold, by day.\twhat went over the counter | busy morning? | how was trade | \
did anybody buy | Fetch yesterday's takings | 3 may, shop 2 | all of them, not one
"""
JUDGED = {
    "tools": [{"server": "till", "name": "refund"}],
    "queries": [{"query": "Show the sales of the shop"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "requests").mkdir()
    for name, rows in JUDGED.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def faults(folder: Path, text: str) -> list[str]:
    (folder / "requests" / "a.tsv").write_text(text, "utf-8")
    return check_requests.faults(folder / "requests", folder)


def test_good_ones_pass(folder: Path) -> None:
    assert faults(folder, GOOD) == []


def test_a_far_request_shares_no_word_with_its_tool(folder: Path) -> None:
    leaking = GOOD.replace("busy morning?", "what did we sell")  # another form of "sold" is another word
    assert faults(folder, leaking) == []
    (fault,) = faults(folder, GOOD.replace("busy morning?", "which sale was it"))
    assert fault.startswith("a.tsv: 1 of 4 far requests have a word of their tool: list_sales: 'which sale")
    assert faults(folder, GOOD.replace("3 may, shop 2", "the sales of may")) == []  # it has details


def test_a_request_is_for_one_tool(folder: Path) -> None:
    more = GOOD + "open_till\tUnlocks the drawer.\tWhat went over the counter!\n"
    (fault,) = faults(folder, more)
    assert fault == "1 of 8 requests are there for several tools: 'What went over the counter!'"


def test_nothing_is_of_a_set_that_search_is_judged_on(folder: Path) -> None:
    near = GOOD.replace("all of them, not one", "show sales of our shop")
    judged = GOOD + "refund\tGives money back.\tshe wants her cash\n"
    assert faults(folder, near) == [
        "'show sales of our shop' is nearly 'Show the sales of the shop', which search is judged on"
    ]
    assert faults(folder, judged) == ["till/refund is a tool that search is judged on"]


def test_the_kinds_of_requests_are_by_their_places(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(GOOD, "utf-8")
    (tool,) = read_file(file)
    assert (tool.server, tool.name, len(tool.requests)) == ("till", "list_sales", 7)
    file.write_text("tool\twithout a server\trequest\n", "utf-8")
    with pytest.raises(ValueError, match=r"a\.tsv:1: write name, description and requests"):
        read_file(file)
