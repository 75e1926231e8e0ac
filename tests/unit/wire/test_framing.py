import tracemalloc
from itertools import pairwise

import pytest
from helpers.json_texts import patient
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.wire import FrameTooLong, LineFramer, framing
from mcpzip.wire.framing import HEAD, TAIL


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def frames_of(pieces: list[bytes], max_frame: int = 40) -> list[bytes | FrameTooLong]:
    framer = LineFramer(max_frame)
    frames = [frame for piece in pieces for frame in framer.feed(piece)]
    last = framer.eof()
    return frames if last is None else [*frames, last]


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"", []),
        (b"one\n", [b"one"]),
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\r\ntwo\r\n", [b"one", b"two"]),
        (b"\n\r\n  \n\t\r\none\n\n", [b"one"]),
        (b"  one \t\n", [b"one"]),
        (b"one\rtwo\n", [b"one\rtwo"]),
        (b"one\nunfinished", [b"one", b"unfinished"]),
        (b"\x00\x0b\x0c\n", [b"\x00\x0b\x0c"]),
        (b"x" * 40 + b"\n", [b"x" * 40]),
    ],
)
def test_lines(data: bytes, frames: list[bytes]) -> None:
    assert frames_of([data]) == frames


@patient
@given(
    st.lists(
        st.sampled_from([b"\n", b"\r\n", b" ", b"a", b"{}", b"x" * 39, b"y" * 41, b"\xff"]) | st.binary()
    ),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_any_split_gives_the_same_frames(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    whole = frames_of([data])
    assert frames_of(cut(data, places)) == whole
    assert frames_of([data[at : at + 1] for at in range(len(data))]) == whole


@patient
@given(st.lists(st.binary().filter(lambda line: b"\n" not in line and line.strip(b" \t\r"))))
def test_every_line_comes_out_once_and_in_order(lines: list[bytes]) -> None:
    stripped = [line.strip(b" \t\r") for line in lines]
    assert frames_of([b"\n".join(lines)], max_frame=1 << 20) == stripped


def test_a_line_too_long_is_told_once_and_the_next_line_is_read() -> None:
    framer = LineFramer(max_frame=10_000)
    head, tail = b"h" * HEAD, b"t" * TAIL
    assert framer.feed(b"before\n" + head + b"m" * 5000) == [b"before"]
    assert framer.feed(b"m" * 5000) == []
    dropped = FrameTooLong(size_at_least=HEAD + 10_000 + TAIL, head=head, tail=tail)
    assert framer.feed(tail + b"\nafter\n") == [dropped, b"after"]
    assert framer.eof() is None


def test_the_ends_of_a_line_too_long_are_kept_however_it_comes() -> None:
    line = b"%b%b%b" % (bytes(range(11, 256)) * 12, b"m" * 3000, bytes(range(255, 10, -1)) * 12)
    dropped = FrameTooLong(len(line), line[:HEAD], line[-TAIL:])
    for size in (1, 7, 100, 5000):
        framer = LineFramer(max_frame=10)
        assert not any(framer.feed(line[at : at + size]) for at in range(0, len(line), size))
        assert framer.feed(b"\n") == [dropped]


def test_a_line_too_long_that_never_ends_is_told_at_the_end() -> None:
    framer = LineFramer(max_frame=3)
    assert framer.feed(b"abcdef") == []
    assert framer.eof() == FrameTooLong(6, b"abcdef", b"abcdef")
    assert framer.eof() is None


@pytest.mark.parametrize("piece", [b"x" * 4096, b"x"])
def test_memory_is_bounded_by_max_frame(piece: bytes) -> None:
    framer = LineFramer(max_frame=30_000)
    ours = tracemalloc.Filter(inclusive=True, filename_pattern=framing.__file__)
    held = []
    tracemalloc.start()
    try:
        for _ in range(20):
            for _ in range(3_000):
                framer.feed(piece)
            # What other threads of the test process allocate meanwhile is not the framer's.
            traces = tracemalloc.take_snapshot().filter_traces([ours]).traces
            held.append(sum(trace.size for trace in traces))
    finally:
        tracemalloc.stop()
    assert max(held) < 100_000
    assert len(framer.feed(b"\nok\n")) == 2
