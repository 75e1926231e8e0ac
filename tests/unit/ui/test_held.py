"""A held definition on the page: whole, visible, and what isn't shown whole is not approved."""

import json
import time
from typing import Any

import pytest
from helpers.acting_markup import acting
from helpers.hostile_texts import hostile
from helpers.poisoned_servers import listed, scenario
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.pins.difference import FIELDS, differences
from mcpzip.pins.record import Hold
from mcpzip.pins.review import HeldItem
from mcpzip.ui.held import shown_item, whole
from mcpzip.ui.limits import REVIEW_CHARACTERS, REVIEW_FIELDS, REVIEW_SIZE
from mcpzip.ui.rendering import render


def item(before: Any, after: Any, name: str = "send", reasons: tuple[str, ...] = ()) -> HeldItem:
    texts = [None if one is None else json.dumps(one).encode() for one in (before, after)]
    return HeldItem("shop", f"tool {name}", Hold(b"\1" * 32, b"", time.time(), reasons), *texts)


def page_of(held: HeldItem) -> str:
    return render(
        "review_item.html",
        root="/r",
        form_token="t",
        item=shown_item(held),
        problem="",
        path="/r/review/shop",
        may_approve=True,
        review_command="mcpzip review shop",
        refresh_command="mcpzip refresh shop",
    ).decode()


FIELD = st.dictionaries(hostile, hostile, max_size=3)


@given(FIELD, FIELD, hostile, hostile)
def test_every_field_is_shown_whole_and_none_acts(
    before: dict[str, str], after: dict[str, str], name: str, reason: str
) -> None:
    held = item(before, after, name, (reason,))
    shown = shown_item(held)
    assert [(one.path, one.before is None, one.after is None) for one in shown.fields] == [
        (whole(one.path), one.before is None, one.after is None)
        for one in differences(held.before, held.after)
    ]
    page = page_of(held)
    assert not [sign for sign in page if not sign.isprintable() and sign not in "\n\t"]
    assert acting(page) == []


@given(st.text("ab<>\u0301", max_size=12), st.text("ab<>\u0301", max_size=12))
def test_what_differs_is_between_what_is_equal(old: str, new: str) -> None:
    for field in shown_item(item({"a": old}, {"a": new})).fields:
        for parts in (field.before, field.after):
            assert parts is not None
            assert sum(differs for _, differs in parts) <= 1
        assert [text for text, differs in field.before or () if not differs] == [
            text for text, differs in field.after or () if not differs
        ]


def test_no_mark_covers_other_lines() -> None:
    assert whole("a" + "\u0301" * 40).count("<U+0301>") > 30


def test_what_is_not_shown_whole_is_not_approved() -> None:
    few = {"a": "x"}
    for held, why in (
        (item(few, None), "not stored"),
        (item(few, {"a": "y" * REVIEW_SIZE}), "too large"),
        (item(few, [0] * (FIELDS + 1)), "too large"),
        (item({"a": "x" * REVIEW_SIZE}, few), "too large"),
        (item(few, {"a": "y" * REVIEW_CHARACTERS}), ""),
        (item(few, {str(number): "" for number in range(REVIEW_FIELDS + 1)}), ""),
        (item(few, {"b" * 400: ""}), ""),
        (item(few, few), ""),
    ):
        shown = shown_item(held)
        assert (shown.whole, shown.missing) == (False, why)
        assert ">Approve</button>" not in page_of(held)
        assert ">Reject</button>" in page_of(held)
        assert len(page_of(held)) < 200_000
    assert shown_item(item(few, {"a": "y"})).whole
    assert ">Approve</button>" in page_of(item(few, {"a": "y"}))


def test_the_largest_page_is_small() -> None:
    most = REVIEW_CHARACTERS // REVIEW_FIELDS - 20
    held = item(None, {f"field-{number}": "'" * most for number in range(REVIEW_FIELDS)})
    assert shown_item(held).whole
    assert len(page_of(held).encode()) < 250_000


@pytest.mark.parametrize("number", range(1, 35))
def test_the_texts_of_poisoned_servers_are_only_text(number: int) -> None:
    told = scenario(number)
    surface = listed(told, 0.0, changed=True)
    texts = (*surface.tools, *surface.prompts, *surface.resources, *surface.templates)
    for text in texts[:20]:  # one of them has thousands of tools that differ in a number
        page = page_of(HeldItem("shop", "tool x", Hold(b"\1" * 32, b"", 0.0), None, text))
        assert acting(page) == []
        assert not [sign for sign in page if not sign.isprintable() and sign not in "\n\t"]
