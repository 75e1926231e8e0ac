"""What a file that we keep says of itself, and what is said of one that is not used."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.system.formats import Format, Head, UnusableError


class Shelf(Head):
    """A file with something in it."""

    books: list[str]


FORMAT = Format("mcpzip-shelf", 3, "a shelf")


def shelf(version: int = 3, **more: object) -> bytes:
    return json.dumps({"format": "mcpzip-shelf", "version": version, "books": ["a"], **more}).encode()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_this_version_or_an_earlier_one_wrote_is_read(version: int) -> None:
    assert FORMAT.decode(shelf(version), Shelf).books == ["a"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (shelf(format="x" * 100), f"isn't a shelf of mcpzip (its format is '{'x' * 40}')"),
        (shelf(4, books=None), "was written by a newer version of mcpzip (4; this one reads 3)"),
        (shelf(books=None), "is damaged or isn't a shelf of mcpzip ("),
    ],
)
def test_why_a_file_is_not_used(data: bytes, said: str) -> None:
    with pytest.raises(UnusableError) as caught:
        FORMAT.decode(data, Shelf)
    assert str(caught.value).startswith(said)
    assert caught.value.later == ("newer" in said)


@given(st.binary() | st.sampled_from([b"[" * 100_000, b'{"format":' * 100_000]))
def test_nothing_in_a_file_raises_anything_else(data: bytes) -> None:
    with pytest.raises(UnusableError):
        FORMAT.decode(data, Shelf)
