"""The index of the words of a table: it finds every word and no other, whatever is in the file."""

import zlib
from pathlib import Path

import pytest
from helpers.search_tools import concepts, table_bytes
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.semantic.row_index import MAGIC, RowIndex, index_of
from mcpzip.search.semantic.table import Table

words = st.lists(st.text(max_size=8), max_size=80, unique=True)


@given(words, st.lists(st.text(max_size=8), max_size=40))
def test_every_word_is_found_and_no_other(vocabulary: list[str], others: list[str]) -> None:
    encodable = [word for word in vocabulary if word.encode("utf-8", "replace").decode() == word]
    index = RowIndex(index_of(encodable, 7))
    assert (len(index), index.checksum) == (len(encodable), 7)
    assert [index.find(word) for word in encodable] == list(range(len(encodable)))
    assert all(index.find(word) is None for word in others if word not in encodable)


def test_it_says_with_which_words_pairs_begin() -> None:
    vocabulary = ["pull", "request", "pull request", "##s"]
    index = RowIndex(index_of(vocabulary, 0))
    assert [index.begins_pair(row) for row in range(4)] == [True, False, False, False]


@given(st.binary(max_size=200) | st.binary(max_size=200).map(MAGIC.__add__))
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="index of rows"):
        RowIndex(data)


@given(st.data())
def test_a_damaged_index_finds_something_else_at_worst(data: st.DataObject) -> None:
    vocabulary = [f"word{number}" for number in range(40)]
    whole = bytearray(index_of(vocabulary, 3))
    for _ in range(data.draw(st.integers(1, 30))):
        place = data.draw(st.integers(len(MAGIC) + 16, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    index = RowIndex(bytes(whole))
    for word in (*vocabulary, "word", "", "zebra"):
        row = index.find(word)
        assert row is None or 0 <= row < len(vocabulary)


def test_a_table_without_its_index_or_with_that_of_another_works_alike(tmp_path: Path) -> None:
    path = tmp_path / "words.bin"
    rows = {"cat": [1.0] * 16, "dog": [-1.0, 1.0] * 8, "cat dog": [1.0, 0.0] * 8}
    path.write_bytes(table_bytes(rows))
    without = Table(path)
    index = path.with_suffix(".idx")
    index.write_bytes(index_of(list(rows), zlib.crc32(path.read_bytes())))
    beside = Table(path)
    index.unlink()  # the one before is mapped
    index.write_bytes(index_of(["cat", "dog"], 1))
    other = Table(path)
    for text in ("cat", "cat dog", "dog cat", "zebra", "cats dogs"):
        assert without.embed(text) == beside.embed(text) == other.embed(text)
    assert without.checksum == beside.checksum == other.checksum == zlib.crc32(path.read_bytes())


def test_what_a_table_remembers_can_be_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "words.bin"
    path.write_bytes(table_bytes(concepts("cat dog", "run")))
    table = Table(path)
    before = table.embed("cat run")
    table.forget()
    assert table.embed("cat run") == before
    assert "cat" in table
    assert table.unknown(["cat", "zebra", "ran"]) == 2
