"""A listing as it lies in a store: the same when it is read, and bounded."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Listed
from mcpzip.catalog.shared_listing import decode, encode
from mcpzip.model import limits
from mcpzip.system.formats import UnusableError

ITEMS = st.lists(st.integers(0, 9).map(lambda number: b'{ "name": "%d"}' % number), max_size=4).map(tuple)
LISTED = st.builds(
    Listed,
    st.just("shop"),
    ITEMS,
    at=st.floats(0, 1e9),
    protocol=st.none() | st.just("2025-11-25"),
    fingerprint=st.just("12345678"),
    title=st.text(max_size=5),
    instructions=st.text(max_size=5),
    prompts=ITEMS,
    resources=ITEMS,
    templates=ITEMS,
    capabilities=st.sampled_from([b"{}", b'{"tools": {}}']),
    info=st.sampled_from([b"", b'{"name": "s"}']),
    ttl=st.none() | st.floats(0, 1e6),
    over=st.sampled_from([(), ("The prompts are too large.",)]),
    unlisted=st.sampled_from([(), ("prompt", "resource")]),
)


@given(LISTED)
def test_it_is_read_as_it_was_written(listed: Listed) -> None:
    assert decode(encode(listed), "shop", "12345678", 1e10) == listed


def test_nothing_was_listed_later_than_now() -> None:
    data = encode(Listed("shop", (), at=5_000.0))
    assert [decode(data, "shop", "", now).at for now in (4_000.0, 6_000.0)] == [4_000.0, 5_000.0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut off"),
        (b"{}", "isn't a listing"),
        (encode(Listed("shop", (), at=1.0))[:-1], "cut off"),
        (zlib.compress(b"[]"), "damaged"),
        (zlib.compress(b'{"format":"mcpzip-listing","version":9}'), "newer version"),
        (zlib.compress(b'{"format":"mcpzip-listing","version":1,"at":1,"tools":[{}'), "damaged"),
    ],
)
def test_what_is_no_listing(data: bytes, why: str) -> None:
    with pytest.raises(UnusableError, match=why):
        decode(data, "shop", "", 1e10)


def test_what_is_too_large_is_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    large = encode(Listed("shop", (b'{"name":"%b"}' % (b"x" * 10_000),), at=1.0))
    monkeypatch.setattr(limits, "SNAPSHOT_SERVER", 5_000)
    with pytest.raises(UnusableError, match="too large"):
        decode(large, "shop", "", 1e10)
    with pytest.raises(ValueError, match="its lists take"):
        encode(Listed("shop", (b'{"name":"%b"}' % (b"x" * 10_000),), at=1.0))
    with pytest.raises(ValueError, match="surrogates"):
        encode(Listed("shop", (), at=1.0, title="\ud800"))
