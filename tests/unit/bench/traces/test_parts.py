"""Which parts of a kept result are read: they show what was to be read."""

import json

from helpers.traces import raw, reading
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.traces.parts import LINE, WINDOW, Range, parts
from bench.traces.quotes import SPAN, Unescaped
from mcpzip.results.reading import read_kept
from mcpzip.wire import quote

ROOM = 1_000_000
"""Tokens of a part: all."""
LONG = "0123456789, " * 300


def ranges(text: str, *wanted: str) -> list[Range]:
    """What is read of a result with this text to see ``wanted``."""
    result = reading(raw(text))
    assert result.document is not None
    return parts(result.document, result.shown, sorted(map(result.shown.index, wanted)), WINDOW)


def read(text: str, each: Range) -> str:
    """What mcpzip answers."""
    arguments = {key: quote(value) for key, value in each.arguments().items()}
    shown = json.loads(read_kept(raw(text), arguments, ROOM).result)
    return str(shown["content"][0]["text"])


def squeezed(text: str) -> str:
    """mcpzip writes no spaces between the elements of JSON."""
    return "".join(text.split())


def test_short_lines_are_read_together() -> None:
    text = "\n".join(f"line {number} of a long and rather boring log" for number in range(1000))
    [found] = ranges(text, "line 500 of")
    assert (found.key, found.first) == ("lines", 501)
    assert WINDOW - 100 < len(read(text, found)) <= WINDOW


def test_a_long_line_is_read_by_characters() -> None:
    text = f"short\n{LONG}needle in the middle of it{LONG}\nshort"
    [found] = ranges(text, "needle")
    assert found.key == "chars"
    assert "needle in the middle of it" in read(text, found)


def test_elements_are_read_at_their_path() -> None:
    rows = [{"id": number, "name": f"the name of number {number}"} for number in range(500)]
    text = json.dumps({"meta": {"page": 1}, "data": {"rows": rows}})
    [found] = ranges(text, '{"id": 250,')
    assert (found.key, found.path, found.first) == ("lines", "data.rows", 251)
    assert json.loads(read(text, found))[0] == rows[250]


def test_a_long_text_in_json_is_read_by_its_characters() -> None:
    text = json.dumps([{"body": f'{LONG}"needle"\nin the middle of it{LONG}'}])
    [found] = ranges(text, "needle")
    assert (found.key, found.path) == ("chars", "[0].body")
    assert '"needle"\nin the middle of it' in read(text, found)


def test_places_that_are_close_are_read_at_once() -> None:
    text = LONG + "the first one of them" + LONG[:500] + "the second one of them" + LONG
    assert len(ranges(text, "the first", "the second")) == 1
    assert len(ranges(text + "the third and last one", "the first", "the third and last one")) == 2


VALUES = st.recursive(
    st.integers() | st.booleans() | st.none() | st.text(max_size=40) | st.just(LONG) | st.just("ü\n" * 900),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
)
LINES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.just(LONG)
TEXTS = st.lists(LINES).map("\n".join)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_the_parts_show_every_place(data: st.DataObject) -> None:
    """For any text and any JSON, as mcpzip answers."""
    as_json = st.builds(lambda v, a: json.dumps(v, ensure_ascii=a), VALUES, st.booleans())
    text = data.draw(as_json | TEXTS)
    result = reading(raw(text))
    assert result.document is not None
    plain = Unescaped(result.shown, bool(result.document.value))
    starts = range(max(0, len(plain.text) - SPAN))
    if not starts:
        return
    chosen = sorted(data.draw(st.sets(st.sampled_from(starts), min_size=1, max_size=4)))
    found = parts(result.document, result.shown, [plain.original(start) for start in chosen], WINDOW)
    texts = [read(text, each) for each in found]
    spans = [plain.text[start : start + SPAN] for start in chosen]
    found_texts = [squeezed(form) for each in texts for form in (each, Unescaped(each, is_json=True).text)]
    for span in spans:
        if '"' not in span and "\\" not in span and "\ufffd" not in span:
            assert any(squeezed(span).strip(",:[]{}") in each for each in found_texts)
    for each in texts:
        assert len(each) <= 4 * LINE
