"""Lines are split exactly as they are, however they arrive."""

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.cassettes.lines import Lines


@given(st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n")), st.lists(st.integers(0, 60)))
def test_lines_are_those_of_the_whole(data, cuts):
    lines, found, at = Lines(), [], 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        found += lines.feed(data[at:cut])
        at = cut
    assert b"\n".join([*found, lines.end()]) == data


def test_a_line_that_is_too_long_is_left_out():
    lines = Lines(most=4)
    assert lines.feed(b"abcd\nab") == [b"abcd"]
    assert lines.feed(b"cde") == []
    assert lines.feed(b"f\r\n\nx") == [b""]
    assert (lines.too_long, lines.end()) == (1, b"x")
