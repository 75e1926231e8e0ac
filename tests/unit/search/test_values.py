"""Addresses and ids in a query are no words of it."""

import pytest
from helpers.search_tools import found, index_of, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import Filters
from mcpzip.search.query import analyze_query
from mcpzip.search.values import without_values


def bare(text: str) -> str:
    return without_values(text, lambda string: string in ("report_2024", "oauth2_2024q1"))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("forward it to anna.weiss@keller-bau.de", "forward it to"),
        ("is <r.thiel@novacorp.de>, my boss, away?", "is my boss, away?"),
        ("show filter ANe1Bmh24xW7, please", "show filter please"),
        ("who is user 8f3a1c2e-77b4-4d19-9e0a-5b61c0d2f4aa", "who is user"),
        ("refund ch_3PqX91AbCdEf now", "refund ch_3PqX91AbCdEf now"),
        ("refund ch_3PqX9134CdEf now", "refund now"),
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
        "show oauth2_2024q1 and report_2024",
        "open /notes/plan_20241231_v2 first",
        "read plan_20241231_v2.md first",
        "anna.weiss@keller-bau.de",
        "mail anna.weiss@keller-bau.de",
        "resize to 1920x1080",
    ],
)
def test_other_strings_stay(query: str) -> None:
    assert bare(query) == query


@given(st.text(), st.booleans())
def test_only_whole_strings_are_left_out(text: str, known: bool) -> None:
    left = without_values(text, lambda _: known)
    assert left == text or (len(left.split()) >= 2 and set(left.split()) < set(text.split()))


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
