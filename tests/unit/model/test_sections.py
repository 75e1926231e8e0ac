"""A file of sections is whole or refused."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.sections import Header, joined, split

MAGIC = b"TEST"


class Named(Header):
    name: str


SECTIONS = {"one": b"abc", "none": b"", "two": bytes(17)}
WHOLE = joined(MAGIC, Named({}, "é"), SECTIONS)


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary(max_size=40)), st.text("aé")
)
def test_what_was_joined_is_split(sections: dict[str, bytes], name: str) -> None:
    header, found = split(MAGIC, memoryview(joined(MAGIC, Named({}, name), sections)), Named)
    assert header.name == name
    assert {each: bytes(data) for each, data in found.items()} == sections


@given(
    st.builds(lambda size: WHOLE[:size], st.integers(0, len(WHOLE) - 1))
    | st.builds(
        lambda place, bits: WHOLE[:place] + bytes([WHOLE[place] ^ bits]) + WHOLE[place + 1 :],
        st.sampled_from([*range(4), *range(8, len(WHOLE))]),
        st.integers(1, 255),
    )
    | st.binary(max_size=60)
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a file"):
        split(MAGIC, memoryview(data), Named)


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="another"):
        split(b"ELSE", memoryview(WHOLE), Named)


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b'{"sections":{}}',
        b'{"name":"x","sections":{"a":9}}',
        b'{"name":"x","sections":{"a":-1}}',
        b'{"name":"x","sections":{"a":4611686018427387904}}',
        b"[" * 100_000,
    ],
)
def test_a_header_that_says_what_cannot_be_is_refused(header: bytes) -> None:
    data = struct.pack("<4sII", MAGIC, len(header), zlib.crc32(header)) + header
    with pytest.raises(ValueError, match="a file"):
        split(MAGIC, memoryview(data), Named)
