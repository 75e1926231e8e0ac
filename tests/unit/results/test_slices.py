"""Elements are found and counted whatever is in them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.results import slices
from mcpzip.results.slices import UnreadableError, count_elements, elements

VALUES = st.lists(
    st.one_of(
        st.integers(),
        st.text(max_size=5),
        st.sampled_from(["\ud800", "a\udfff", "\\ud800"]),
        st.lists(st.just("\udc00"), max_size=2),
    ),
    max_size=8,
)


@given(VALUES, st.booleans())
def test_each_element_is_found_and_counted(values: list[object], at_once: bool) -> None:
    raw = json.dumps(values).encode()
    assert [json.loads(each) for each in elements(raw)] == values
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "COUNTED", slices.COUNTED if at_once else 0)
        assert count_elements(raw) == len(values)


def test_too_many_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "COUNTED", 0)
    monkeypatch.setattr(slices, "COUNTED_ONE_BY_ONE", 3)
    assert count_elements(b"[1,2,3]") == 3
    assert count_elements(b"[1,2,3,4]") is None


@pytest.mark.parametrize("raw", [b"{}", b"[1,", b'["\\ud800",', b"[" * 100_000, b""])
def test_what_is_no_array_is_an_error(raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        count_elements(raw)
    with pytest.raises(UnreadableError):
        list(elements(raw))
