"""Compressed bodies, taken out of their coding in pieces."""

import gzip
import tracemalloc
import zlib

import pytest

from mcpzip.wire.content_coding import PIECE, ContentCodingError, decoder

TEXT = b'{"jsonrpc":"2.0"}' * 20_000


def raw_deflate(text: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(text) + stream.flush()


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("gzip", gzip.compress(TEXT) + b"what follows is nothing"),
    ],
)
@pytest.mark.parametrize("step", [1, 1000, 1_000_000])
def test_what_comes_out_is_what_went_in(coding: str, coded: bytes, step: int) -> None:
    one = decoder(coding)
    pieces = [piece for at in range(0, len(coded), step) for piece in one.feed(coded[at : at + step])]
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= PIECE


def test_a_bomb_comes_out_in_pieces() -> None:
    """One read of 64 KiB became 64 MB in one turn of the event loop."""
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 64 * 1024
    tracemalloc.start()
    assert sum(map(len, decoder("gzip").feed(bomb))) == 50_000_000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_a_coding_that_was_not_asked_for_is_refused(coding: str) -> None:
    with pytest.raises(ContentCodingError, match="not requested"):
        decoder(coding)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_not_coded_as_it_says_is_refused(coding: str) -> None:
    with pytest.raises(ContentCodingError, match=coding):
        list(decoder(coding).feed(b"\xff\xff\xff\xff\xff"))
