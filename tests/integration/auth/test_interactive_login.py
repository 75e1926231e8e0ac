"""The person who signs in: what they are shown, what they type, and which browser is opened."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth.interactive_login import InteractiveLogin
from mcpzip.model.errors import LoginError
from mcpzip.system.browser import open_browser, why_no_browser
from mcpzip.system.terminal import LineInput, is_interactive

PAGE = "https://as.example/authorize?response_type=code&state=s1"
ANSWER = urlencode({"code": "c0de", "state": "s1", "iss": "https://as.example"})


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    """A pipe in place of a terminal: where to read, and where to type."""
    reading, typing = os.pipe()
    yield reading, typing
    os.close(typing)


async def test_what_is_pasted_is_the_answer(keyboard: tuple[int, int]) -> None:
    told: list[str] = []
    reading, typing = keyboard
    async with InteractiveLogin("tracker", told.append, timeout=60, browser=False, stdin=reading) as person:
        await person.show(PAGE)
        os.write(typing, b"\n" + f"{person.redirect_uri}?{ANSWER}\n".encode())
        answer = await person.answer()
    assert (answer.code, answer.state, answer.iss) == ("c0de", "s1", "https://as.example")
    assert told[0] == f"To sign in to tracker, open this page in a browser:\n\n{PAGE}\n"
    assert told[-1] == "Waiting for you, 60 s at most. Ctrl-C ends it."
    assert person.asked


async def test_a_second_page_asks_for_a_second_answer(keyboard: tuple[int, int]) -> None:
    told: list[str] = []
    reading, typing = keyboard
    async with InteractiveLogin("tracker", told.append, timeout=60, browser=False, stdin=reading) as person:
        await person.show(PAGE)
        os.write(typing, f"{ANSWER}\n".encode())
        assert (await person.answer()).state == "s1"
        await person.show(PAGE.replace("s1", "s2"))
        os.write(typing, f"{ANSWER}\n{ANSWER.replace('s1', 's2')}\n".encode())
        assert (await person.answer()).state == "s2"
    assert any("state of another login" in line for line in told)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)?state=s",
        "https://x.example/\ud800?state=s",
        "file:///etc/passwd?state=s",
        "ms-settings:x?state=s",
        "-http://as.example/?state=s",
        "http:///authorize?state=s",
        "https://as.example@evil.example/?state=s",
        "https://as.example/authorize",
    ],
)
async def test_a_page_that_is_none_is_not_opened(url: str) -> None:
    told: list[str] = []
    async with InteractiveLogin("tracker", told.append, timeout=60) as person:
        with pytest.raises(LoginError, match="it was not opened"):
            await person.show(url)
    assert told == []


@given(st.text(st.characters(codec="utf-8"), max_size=30))
async def test_an_address_can_do_a_terminal_no_harm(path: str) -> None:
    told: list[str] = []
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        async with InteractiveLogin(
            "tracker", told.append, timeout=60, browser=False, stdin=nothing
        ) as person:
            await person.show(f"https://as.example/?state=s&path={path}")
    finally:
        os.close(nothing)
    (shown,) = [line for line in told[0].splitlines() if line.startswith("https:")]
    assert shown.isascii()
    assert shown.isprintable()
    assert " " not in shown


@pytest.mark.parametrize(
    ("env", "platform", "why"),
    [
        ({"DISPLAY": ":0"}, "linux", ""),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ""),
        ({}, "linux", "there is no display here"),
        ({}, "darwin", ""),
        ({}, "win32", ""),
        ({"DISPLAY": ":0", "SSH_TTY": "/dev/pts/1"}, "linux", "this session came over SSH"),
        ({"SSH_CONNECTION": "a b c d"}, "darwin", "this session came over SSH"),
        ({"SSH_CONNECTION": "a b c d", "BROWSER": "code --open-url"}, "linux", ""),
    ],
)
def test_where_a_browser_can_be_opened(env: dict[str, str], platform: str, why: str) -> None:
    assert why_no_browser(env, platform) == why


@pytest.mark.skipif(os.name == "nt", reason="the browser is a shell script")
def test_the_browser_gets_the_address_and_nothing_of_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho noise; echo noise >&2; printf %s "$#:$1" > "{seen}"\n')
    browser.chmod(0o755)
    url = f"{PAGE}&x=$(id)'`id`;|"
    assert open_browser(url, {**os.environ, "BROWSER": str(browser)})
    assert seen.read_text() == f"1:{url}"
    assert capfd.readouterr() == ("", "")
    assert not open_browser(url, {**os.environ, "BROWSER": str(tmp_path / "none")})
    with pytest.raises(ValueError, match="not a web page"):
        open_browser("file:///etc/passwd", {})


def test_lines_are_read_whole(keyboard: tuple[int, int]) -> None:
    reading, typing = keyboard
    os.write(typing, b"one\ntw")
    os.write(typing, b"oo\x7f\nwrong\x15three\n\xff\n" + b"x" * 9_000 + b"\n")
    lines = LineInput(reading)
    assert [lines.next() for _ in range(5)] == ["one", "two", "three", "\ufffd", "x" * 9_000]
    assert not is_interactive(reading)


def test_what_ends_without_a_line_end_is_a_line_too() -> None:
    reading, typing = os.pipe()
    os.write(typing, b"last")
    os.close(typing)
    lines = LineInput(reading)
    assert (lines.next(), lines.next()) == ("last", None)
    os.close(reading)
    assert lines.next() is None
