"""The text of the config in a form: what a person didn't change keeps its bytes."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.ui.config_text import data_of, hidden_lines, read
from mcpzip.ui.limits import CONFIG_TEXT

bodies = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=5)
files = st.builds(
    lambda mark, lines, last: mark + ("".join(body + end for body, end in lines) + last).encode(),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(bodies, st.sampled_from(["\n", "\r\n", "\r"])), max_size=8),
    bodies.filter(lambda text: not text.startswith("\ufeff")),
)


def in_a_browser(text: str) -> str:
    """What a browser sends of a text field with ``text`` (HTML, "constructing the entry list")."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@given(files)
def test_a_form_that_nobody_touched_is_the_file(data: bytes) -> None:
    text = data.decode("utf-8").removeprefix("\ufeff") if data.startswith(b"\xef\xbb\xbf") else data.decode()
    if not text.startswith("\ufeff"):
        assert data_of(in_a_browser(text), data) == data


def test_a_new_line_gets_the_usual_end() -> None:
    assert data_of("a\r\nb\r\nnew\r\n", b"a\r\nb\r\n") == b"a\r\nb\r\nnew\r\n"
    assert data_of("a\r\nnew\r\nb\r\n", b"a\nb\n") == b"a\nnew\nb\n"
    assert data_of("a\r\nnew\r\nb\r\nc", b"a\r\nb\nc") == b"a\r\nnew\nb\nc"
    assert data_of("{}\r\n", None) == b"{}\n"


def test_what_cannot_be_edited_says_why(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    assert read(str(path)).data is None
    for data, why in (
        (b"x" * (CONFIG_TEXT + 1), "larger than"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b'{"a": "\0"}', "NUL"),
    ):
        path.write_bytes(data)
        assert why in read(str(path)).problem
    path.unlink()
    path.mkdir()
    assert "can't be read" in read(str(path)).problem


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    os.mkfifo(path)
    assert "not a file" in read(str(path)).problem


def test_lines_with_hidden_characters_are_named() -> None:
    assert hidden_lines("a\n\tb\r\nc\u200b\nd\u202e\n") == [3, 4]
    assert hidden_lines("äß\n") == []
