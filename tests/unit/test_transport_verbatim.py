"""Where the events of a stream end, however they come."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.transport.verbatim import _event_end

ENDS = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
TEXT = st.lists(st.sampled_from([b"\r", b"\n", b"a", b"data: x", b"\r\n"]), max_size=12).map(b"".join)


@given(TEXT, st.integers(0, 12))
def test_an_event_ends_where_two_lines_do(text: bytes, start: int) -> None:
    found = ENDS.search(text, start)
    assert _event_end(bytearray(text), start) == (found.end() if found else 0)
