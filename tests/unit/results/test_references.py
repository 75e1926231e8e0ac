"""Kept results as arguments of a call."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidArgumentsError, KeptNoMoreError
from mcpzip.results import references
from mcpzip.results.document import Document, read_result
from mcpzip.results.references import fill

ONE, TEXT, GONE = "r1-" + "a" * 16, "r2-" + "b" * 16, "r3-" + "c" * 16
VALUE = b'{"body": [1.50, {"x":"\\ud800"}]}'
RESULTS = {
    ONE: b'{"content":[],"structuredContent":%b}' % VALUE,
    TEXT: json.dumps({"content": [{"type": "text", "text": 'a "b"\nü'}]}).encode(),
}


def find(handle: str) -> tuple[str, Document]:
    if handle not in RESULTS:
        raise KeptNoMoreError(handle)
    return "github__get", read_result(RESULTS[handle])


@pytest.mark.parametrize(
    ("arguments", "filled"),
    [
        ('{"a": {"$kept": "ONE"}, "n": 1.0}', '{"a": ' + VALUE.decode() + ', "n": 1.0}'),
        ('{"a": [{"$kept": "ONE", "path": "/body/0"}]}', '{"a": [1.50]}'),
        ('{"a": {"b": {"path": "body[1].x", "$kept": "ONE"}}}', '{"a": {"b": "\\ud800"}}'),
        ('{"a": {"$kept": "TEXT"}}', '{"a": "a \\"b\\"\\nü"}'),
        ('{"a": {"$$kept": "ONE"}}', '{"a": {"$kept":"ONE"}}'),
        ('{"a": {"$kept": "ONE", "more": 1}}', '{"a": {"$kept": "ONE", "more": 1}}'),
        ('{"a": {"$kept": "my words"}}', '{"a": {"$kept": "my words"}}'),
        ('{"a": {"$kept": 5}, "$kept": "ONE"}', '{"a": {"$kept": 5}, "$kept": "ONE"}'),
    ],
)
def test_a_reference_is_its_value_and_all_else_stays(arguments: str, filled: str) -> None:
    given_, wanted = (each.replace("ONE", ONE).replace("TEXT", TEXT).encode() for each in (arguments, filled))
    assert fill(given_, find).arguments == wanted


def test_a_person_is_told_what_it_is() -> None:
    arguments = b'{"a": {"$kept": "%b", "path": "/body"}}' % ONE.encode()
    (about,) = fill(arguments, find).about
    assert about.startswith(f"{ONE} at /body is about ")
    assert about.endswith(" tokens of a result of github__get.")


def test_what_is_gone_or_not_there_is_an_error() -> None:
    with pytest.raises(KeptNoMoreError):
        fill(b'{"a": {"$kept": "%b"}}' % GONE.encode(), find)
    with pytest.raises(InvalidArgumentsError, match="has no 'titel'"):
        fill(b'{"a": {"$kept": "%b", "path": "titel"}}' % ONE.encode(), find)
    with pytest.raises(InvalidArgumentsError, match="no paths"):
        fill(b'{"a": {"$kept": "%b", "path": "titel"}}' % TEXT.encode(), find)


def test_their_number_and_size_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    one = json.dumps({"$kept": ONE})
    monkeypatch.setattr(references, "MOST", 3)
    assert len(fill(f'{{"a": [{", ".join([one] * 3)}]}}'.encode(), find).about) == 3
    with pytest.raises(InvalidArgumentsError, match="more than 3"):
        fill(f'{{"a": [{", ".join([one] * 4)}]}}'.encode(), find)
    monkeypatch.setattr("mcpzip.model.limits.MESSAGE", 60)
    with pytest.raises(InvalidArgumentsError, match="too long"):
        fill(f'{{"a": [{one}, {one}]}}'.encode(), find)


TEXTS = st.sampled_from(["$kept", "$$kept", "path", "a", "", ONE, "/body", 'kept"'])
JSON = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


def expected(value: Any) -> Any:
    """The same, of Python values."""
    if isinstance(value, list):
        return [expected(each) for each in value]
    if not isinstance(value, dict):
        return value
    for key, named in (("$kept", True), ("$$kept", False)):
        if key not in value:
            continue
        if not value.keys() <= {key, "path"} or value[key] != ONE:
            break
        if not named:
            return {"$kept" if name == "$$kept" else name: each for name, each in value.items()}
        path = value.get("path")
        whole = json.loads(VALUE)
        if path in (None, "") or not isinstance(path, str):
            return whole
        if path == "/body":
            return whole["body"]
        raise KeyError(path)
    return {key: expected(each) for key, each in value.items()}


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_references_are_found_in_any_arguments(arguments: dict[str, Any]) -> None:
    raw = json.dumps(arguments).encode()
    try:
        wanted = {key: expected(each) for key, each in arguments.items()}
    except KeyError:
        with pytest.raises(InvalidArgumentsError):
            fill(raw, find)
        return
    assert json.loads(fill(raw, find).arguments) == wanted
