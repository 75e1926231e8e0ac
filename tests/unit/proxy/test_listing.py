"""Pages: small enough, and whatever changes between two of them, nothing that stays is lost or repeated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidCursorError
from mcpzip.proxy import paged_list
from mcpzip.proxy.paged_list import PAGE, PagedList


def named(keys, member="tools", opening=(), padding=0):
    return PagedList(
        member, keys, lambda key: json.dumps({"name": key, "x": "y" * padding}).encode(), opening
    )


def names(page, member="tools"):
    return [element["name"] for element in json.loads(page)[member]]


def walk(*listings):
    """Every name, asking each of ``listings`` for one page and the last for the rest."""
    found, cursor = [], None
    for at in range(1_000):
        page = listings[min(at, len(listings) - 1)].page(cursor)
        found += names(page)
        cursor = json.loads(page).get("nextCursor")
        if cursor is None:
            return found
    raise AssertionError("the pages have no end")


KEYS = st.sets(st.text(min_size=1, max_size=3), max_size=12)


@pytest.fixture(autouse=True, scope="module")
def small_pages():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paged_list, "PAGE", 60)
        yield


def test_a_list_that_fits_is_one_page_without_a_cursor():
    assert named("ba").page() == b'{"tools":[{"name": "a", "x": ""},{"name": "b", "x": ""}]}'
    assert named("").page() == b'{"tools":[]}'


@given(keys=KEYS, opening=st.lists(st.just(b'{"name":"meta"}'), max_size=2))
def test_the_pages_together_are_the_list_in_order(keys, opening):
    assert walk(named(keys, opening=opening)) == ["meta"] * len(opening) + sorted(keys)


@given(stay=KEYS, gone=KEYS, new=KEYS, later=KEYS)
def test_what_stays_is_on_one_page_whatever_comes_and_goes(stay, gone, new, later):
    found = walk(named(stay | gone), named(stay | new), named(stay | later))
    assert sorted(each for each in found if each in stay) == sorted(stay)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("opening", [(), (b'{"name":"meta"}',)])
def test_an_element_bigger_than_a_page_is_listed_all_the_same(opening):
    big = named("abc", opening=opening, padding=500)
    assert len(names(big.page())) == len(opening) + 1
    assert walk(big)[-3:] == ["a", "b", "c"]


def test_the_same_list_has_the_same_pages_in_every_run():
    page = named("abcdef").page()
    assert page == named("fedcba").page()
    cursor = json.loads(page)["nextCursor"]
    assert cursor == "f4d1b7e562"
    assert named("abcdef").page(cursor) == named("fedcba").page(cursor)


@given(cursor=st.text(max_size=12) | st.binary(max_size=9).map(bytes.hex))
def test_a_cursor_of_nobodys_is_refused(cursor):
    with pytest.raises(InvalidCursorError, match="Begin again without one"):
        named("abcdef").page(cursor)


def test_a_cursor_changed_or_of_another_list_is_refused():
    cursor = json.loads(named("abcdef").page())["nextCursor"]
    for wrong in (cursor.upper(), f" {cursor}", cursor[:-2], f"{cursor}00", ""):
        with pytest.raises(InvalidCursorError):
            named("abcdef").page(wrong)
    with pytest.raises(InvalidCursorError):
        named("abcdef", "prompts").page(cursor)


def test_a_name_that_is_no_unicode_text_can_end_a_page():
    keys = ["a", "b", "\ud800", "\ud801"]
    assert walk(named(keys, padding=30)) == keys


def test_a_page_fits_in_an_event_that_clients_take(monkeypatch):
    monkeypatch.setattr(paged_list, "PAGE", PAGE)
    many = named([f"{n:05}" for n in range(3_000)], padding=1_000)
    first = many.page()
    assert PAGE - 2_000 < len(first) < PAGE + 100
    assert len(walk(many)) == 3_000
