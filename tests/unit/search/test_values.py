"""Addresses and ids in a query are no words of it."""

import pytest
from helpers.search_tools import found, index_of, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import Filters
from mcpzip.search.query import analyze_query
from mcpzip.search.tokenizer import words
from mcpzip.search.values import without_values


def bare(text: str) -> str:
    return without_values(text, frozenset(["jira", "cve", "order", "report", "2024", "q", "1"]).__contains__)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("forward it to anna.weiss@keller-bau.de", "forward it to"),
        ("is <r.thiel@novacorp.de>, my boss, away?", "is my boss, away?"),
        ("show filter ANe1Bmh24xW7, please", "show filter please"),
        ("who is user 8f3a1c2e-77b4-4d19-9e0a-5b61c0d2f4aa", "who is user"),
        ("refund ch_3PqX91AbCdEf now", "refund ch_3PqX91AbCdEf now"),
        ("refund ch_3PqX9134CdEf now", "refund now"),
        ("show me order#20240017", "show me order"),
        ("tell me about JIRA-123456", "tell me about jira"),
        ("what is CVE-2024-3094?", "what is cve"),
        ("is *anna@x.de* or ‘bob@y.de’… here", "is or here"),
        ("write to mailto:anna@x.de now", "write to now"),
    ],
)
def test_values_are_left_out(query: str, left: str) -> None:
    assert bare(query) == left


@pytest.mark.parametrize(
    "query",
    [
        "",
        "send it to @anna",
        "ping anna@localhost now",
        "the weather in 2024 for 12345678901",
        "show report_2024_q1 to me",
        "install the package lodash@4.17.21",
        "clone it from git@github.com now",
        "帮我查 2024年12月25日北京的天气预报 谢谢",
        "convert video_20241231.mp4 to audio",
        "read data_20241231.parquet first",
        "open /notes/plan_20241231_v2 first",
        "read plan_20241231_v2.md first",
        "anna.weiss@keller-bau.de",
        "mail anna.weiss@keller-bau.de",
        "resize to 1920x1080",
    ],
)
def test_other_strings_stay(query: str) -> None:
    assert bare(query) == query


@pytest.mark.parametrize(
    "value", ["8f3a1c2e-77b4-4d19-9e0a-5b61c0d2f4aa", "c0ffee12-77b4-4bad-9e0a-5b61c0d2f4aa", "a1b2c3d4e5f6"]
)
def test_ids_of_single_letters_are_left_out_where_tools_have_them_all(value: str) -> None:
    left = without_values(f"who is user {value} in Notion", lambda _: True)
    assert set(left.split()) <= {"who", "is", "user", "in", "Notion", "ffee", "bad"}


@given(st.text(), st.booleans())
def test_no_word_is_added(text: str, known: bool) -> None:
    left = without_values(text, lambda _: known)
    assert left == text or len(left.split()) >= 2
    assert set(left.split()) <= set(text.split()) | {word for word, _ in words(text)}


@given(st.from_regex(r"[a-z]{6,20}[0-9]{4,20}", fullmatch=True))
def test_all_ids_have_one_plan(value: str) -> None:
    index = index_of(
        tool("pay", "refund_charge", "Refund a charge"), tool("pay", "get_charge", "Show a charge")
    )
    plan = analyze_query(f"refund the charge {value} today", Filters(), index).plan
    assert plan == analyze_query("refund the charge today", Filters(), index).plan


def test_a_name_that_looks_like_an_id_is_found() -> None:
    made = searcher(
        tool("sales", "report_2024q1_final", "The first quarter"),
        tool("sales", "report_2024q2_final", "The second quarter"),
    )
    for name in ("report_2024q1_final", "report_2024q2_final"):
        assert found(made, f"please show {name} to me")[0] == f"sales__{name}"
