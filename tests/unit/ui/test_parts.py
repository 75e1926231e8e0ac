"""Parts of lists, bars, fields of forms, and results as they are shown."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.ui.charts import WIDTH, Bar, bars
from mcpzip.ui.limits import FIELDS
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import TooManyFieldsError, fields_of
from mcpzip.ui.results import LONGEST, shown_result


@given(st.integers(0, 60), st.integers(1, 9))
def test_every_row_is_on_one_page(count: int, size: int) -> None:
    rows = list(range(count))
    pages = part_of(rows, 1, size).pages
    parts = [part_of(rows, page, size) for page in range(1, pages + 1)]
    assert [row for part in parts for row in part.rows] == rows
    assert all(part.rows == rows[part.first - 1 : part.last] for part in parts if count)
    assert part_of(rows, -5, size) == parts[0]
    assert part_of(rows, 10**6, size) == parts[-1]


@given(st.lists(st.floats(0, 1e12, allow_nan=False)))
def test_no_bar_is_wider_than_the_chart(values: list[float]) -> None:
    drawn = bars([Bar("x", value) for value in values])
    assert all(0 <= one.width <= WIDTH for one in drawn)
    assert not any(values) or max(one.width for one in drawn) == WIDTH


def test_a_label_is_short_and_harmless() -> None:
    (drawn,) = bars([Bar("\u202e" * 100, 1.0)], 2.0)
    assert drawn.width == WIDTH / 2
    assert "\u202e" not in drawn.label


@given(st.dictionaries(st.text(), st.text(), max_size=FIELDS))
def test_fields_are_those_of_a_form(fields: dict[str, str]) -> None:
    encoded = urlencode(
        {k.encode("utf-8", "replace"): v.encode("utf-8", "replace") for k, v in fields.items()}
    )
    assert len(fields_of(encoded)) <= len(fields)


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(TooManyFieldsError):
        fields_of("&".join(f"a{number}=1" for number in range(FIELDS + 1)))


def result(*content: object, **more: object) -> bytes:
    return json.dumps({"content": content, **more}).encode()


def test_a_result_is_shown_by_its_parts() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 5000}
    shown = shown_result(result({"type": "text", "text": "hello"}, image, isError=True))
    assert shown.failed
    assert [(part.label, part.text) for part in shown.parts] == [
        ("text", "hello"),
        ("image, image/png, 5,000 base64 characters, not shown", ""),
    ]


@pytest.mark.parametrize("text", ["x" * 30_000, "\U000e0041" * 9_000, "\x1b[2J" * 9_000])
def test_what_is_shown_of_a_result_is_bounded(text: str) -> None:
    shown = shown_result(result(*[{"type": "text", "text": text}] * 200))
    assert sum(len(part.text) for part in shown.parts) < LONGEST + 101 * 60
    assert len(shown.parts) == 101
    assert all(char.isprintable() or char == "\n" for part in shown.parts for char in part.text)


@pytest.mark.parametrize("raw", [b"[]", b'{"content":3}', b"[" * 100_000, b"\xff"])
def test_a_malformed_result_is_shown_as_it_is(raw: bytes) -> None:
    assert [part.label for part in shown_result(raw).parts] == ["JSON"]


def test_whatever_of_a_result_a_model_may_read_is_shown() -> None:
    inner = {"uri": "file:///notes", "text": "read \u202e me", "mimeType": "text/plain"}
    link = {"type": "resource_link", "uri": "javascript:x", "name": "a", "description": "b"}
    blob = {"type": "resource", "resource": {"uri": "u", "blob": "AAAA"}}
    shown = shown_result(
        result({"type": "resource", "resource": inner}, link, blob, structuredContent={"k": "v \u202e"})
    )
    assert [(part.label, part.text) for part in shown.parts] == [
        ("resource, text/plain", "file:///notes\nread \\u202e me"),
        ("resource_link", "javascript:x\na\nb"),
        ("resource, 4 base64 characters, not shown", "u"),
        ("structured content, which some clients give the model", '{"k": "v \\u202e"}'),
    ]
    assert shown_result(result({"type": "text", "text": "x"}, structuredContent=None)).parts[1:] == []
