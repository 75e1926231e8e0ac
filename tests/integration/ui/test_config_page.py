"""The page *Config*: checked, compared, saved by a person, undone; and what keeps others from it."""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest
from helpers.acting_markup import acting
from helpers.ui_client import Answer, Page, page_of, terminal_page_of
from helpers.ui_places import MARKUP

from mcpzip.ui.limits import CONFIG_TEXT, DRAFTS

ACTING = set("\u202e\u200b\x1b\x07")
TEXT = '{\n  "mcpServers": {\n    "time": {"command": "uvx",   "args": ["mcp-server-time"]}\n  }\n}\n'
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")


def written(folder: Path, text: str = TEXT) -> Path:
    config = folder / "config.json"
    config.write_text(text)
    return config


@contextmanager
def person_at(config: Path) -> Iterator[Page]:
    """The page of a person at a terminal, who is signed in."""
    with terminal_page_of(config) as page:
        yield page.sign_in()


def text_in(answer: Answer) -> str:
    """The text in the form."""
    found = re.search(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', answer.text, re.DOTALL)
    assert found
    return unescape(found[1])


def base_in(answer: Answer) -> str:
    found = re.search(r'name="base" value="([0-9a-z]+)"', answer.text)
    assert found
    return found[1]


def draft_in(answer: Answer) -> str:
    """The id of the draft that a page shows."""
    found = re.search(r'name="draft" value="([^"]+)"', answer.text)
    assert found, answer.words
    return found[1]


def without_field(answer: Answer) -> str:
    """The page without the text field, which has the text as it is."""
    return re.sub(r"<textarea.*?</textarea>", "", answer.text, flags=re.DOTALL)


def differ(page: Page, text: str) -> Answer:
    """The difference that ``text`` makes."""
    return page.submit("/config/diff", text=text.replace("\n", "\r\n"), base=base_in(page.get("/config")))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page that no person has started."""
    with page_of(written(tmp_path_factory.mktemp("config"))) as page:
        yield page.sign_in()


def test_a_text_is_checked_with_line_and_column(page: Page) -> None:
    assert text_in(page.get("/config")) == TEXT
    assert "It can be used: 1 server." in page.get("/config").words
    broken = TEXT.replace('"uvx",', '"uvx"')
    for fields in ({"text": broken}, {"text": broken, "part": "1"}):
        answer = page.submit("/config/check", **fields)
        assert "Error , line 3, column 33" in answer.words
        assert "two members without a comma between them; put a comma before it" in answer.words
    assert "<html" not in page.submit("/config/check", text=broken, part="1").text
    words = page.submit("/config/check", text=TEXT.replace("uvx", "${NOT_SET}").replace("args", "arg")).words
    assert "Warning , line 3, column 14 : mcpServers.time.command: the environment variable" in words
    assert "Warning , line 3, column 41 : mcpServers.time.arg: unknown key" in words
    assert "It can be used" in words


def test_a_text_that_cannot_be_used_is_not_compared(page: Page) -> None:
    for text in ("{", "", "[]", '{"mcpServers": []}', "\x00", '{"a": 1, "a": 2}'):
        answer = page.submit("/config/diff", text=text)
        assert answer.status == 400
        assert "can't be used" in answer.words
    assert page.submit("/config/diff", text=TEXT).status == 400
    assert "no difference" in page.submit("/config/diff", text=TEXT).words
    huge = '{"mcpServers": {}, "_": "' + "x" * CONFIG_TEXT + '"}'
    assert page.submit("/config/diff", text=huge).status == 400
    assert page.submit("/config/check", text="x" * 300_000).status == 413


def test_the_difference_is_shown_and_what_it_means(page: Page) -> None:
    answer = differ(page, TEXT.replace('"time"', '"clock"').replace('"uvx",   ', '"uvx", '))
    words = answer.words
    assert "1 line added, 1 line removed" in words
    assert "− removed" in words
    assert "Servers added clock" in words
    assert "Servers removed: their processes end time" in words
    assert "<mark>" in answer.text


def test_without_a_terminal_nothing_is_saved(page: Page) -> None:
    answer = differ(page, TEXT.replace("time", "clock"))
    assert ">Save</button>" not in answer.text
    assert "Only a person at a terminal saves" in answer.words
    assert page.submit("/config/save", draft=draft_in(answer)).status == 403
    assert page.submit("/config/forget").status == 403
    assert text_in(page.get("/config")) == TEXT


@posix_only
def test_a_person_saves_exactly_what_was_shown_and_undoes_it(tmp_path: Path) -> None:
    config = written(tmp_path)
    os.chmod(config, 0o640)
    with person_at(config) as page:
        edited = TEXT.replace('"uvx",   ', '"uvx", ')
        answer = differ(page, edited)
        assert ">Save</button>" in answer.text
        assert config.read_text() == TEXT
        done = page.submit("/config/save", draft=draft_in(answer))
        assert done.headers["location"] == f"{page.root}/config?done=saved"
        assert config.read_text() == edited
        assert stat.S_IMODE(config.stat().st_mode) == 0o640
        assert page.submit("/config/save", draft=draft_in(answer)).status == 409
        words = page.get("/config?done=saved").words
        assert "It was saved." in words
        assert "No daemon runs" in words
        assert "1 version" in words
        (version,) = re.findall(r'name="version" value="([^"]+)"', page.get("/config").text)
        back = page.submit("/config/undo", version=version)
        assert "1 line added, 1 line removed" in back.words
        assert config.read_text() == edited
        page.submit("/config/save", draft=draft_in(back))
        assert config.read_text() == TEXT
        assert page.submit("/config/undo", version="../../config").status == 404
        for file in (tmp_path / "history").glob("*.json"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert page.submit("/config/forget").status == 303
        assert list((tmp_path / "history").glob("*.json")) == []


@posix_only
def test_a_text_can_be_changed_further(tmp_path: Path) -> None:
    config = written(tmp_path)
    with person_at(config) as page:
        answer = differ(page, TEXT.replace("time", "clock"))
        again = page.submit("/config/edit", draft=draft_in(answer))
        assert text_in(again) == TEXT.replace("time", "clock")
        assert page.submit("/config/edit", draft="x").status == 409


@posix_only
def test_what_somebody_else_wrote_meanwhile_is_not_lost(tmp_path: Path) -> None:
    config = written(tmp_path)
    with person_at(config) as page:
        base = base_in(page.get("/config"))
        mine = TEXT.replace("time", "mine")
        answer = page.submit("/config/diff", text=mine, base=base)
        theirs = TEXT.replace("time", "theirs")
        config.write_text(theirs)
        late = page.submit("/config/save", draft=draft_in(answer))
        assert late.status == 409
        assert "nothing was saved" in late.words
        assert "Servers removed: their processes end theirs" in late.words
        assert config.read_text() == theirs
        stale = page.submit("/config/diff", text=mine, base=base)
        assert "was changed since you opened it" in stale.words
        page.submit("/config/save", draft=draft_in(late))
        assert config.read_text() == mine
        assert page.submit("/config/save", draft=draft_in(stale)).status in (303, 409)


def test_what_a_text_was_made_from_is_remembered_through_checks_mistakes_and_more_changes(
    tmp_path: Path,
) -> None:
    config = written(tmp_path)
    mine = TEXT.replace("time", "mine")
    with page_of(config) as page:
        page.sign_in()
        base = base_in(page.get("/config"))
        before = page.submit("/config/diff", text=mine, base=base)
        config.write_text(TEXT.replace("time", "theirs"))
        answers = [
            page.submit("/config/check", text=mine, base=base),
            page.submit("/config/diff", text="{", base=base),
            page.submit("/config/edit", draft=draft_in(before)),
        ]
        for answer in answers:
            late = page.submit("/config/diff", text=mine, base=base_in(answer))
            assert "was changed since you opened it" in late.words


@posix_only
def test_two_saves_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    config = written(tmp_path)
    with person_at(config) as page, ThreadPoolExecutor() as pool:
        names = [f"server{number}" for number in range(6)]
        texts = [TEXT.replace("time", name, 1) for name in names]
        drafts = [draft_in(differ(page, text)) for text in texts]
        answers = list(pool.map(lambda draft: page.submit("/config/save", draft=draft).status, drafts))
        assert sorted(answers) == [303, *[409] * 5]
        assert config.read_text() == texts[answers.index(303)]
        assert len(list((tmp_path / "history").glob("*.json"))) == 1
        for number in range(DRAFTS):
            differ(page, TEXT.replace("time", f"other{number}", 1))
        assert page.submit("/config/save", draft=drafts[0]).status == 409


@posix_only
def test_a_link_leads_to_the_file_that_is_saved(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "home").mkdir()
    target = written(tmp_path / "dotfiles")
    config = tmp_path / "home" / "config.json"
    config.symlink_to(target)
    with person_at(config) as page:
        assert f"a link to {target}" in page.get("/config").words
        page.submit("/config/save", draft=draft_in(differ(page, TEXT.replace("time", "clock"))))
        assert config.is_symlink()
        assert "clock" in target.read_text()
        assert (tmp_path / "home" / "history").is_dir()


@posix_only
def test_the_first_config_is_written(tmp_path: Path) -> None:
    config = tmp_path / "new" / "config.json"
    config.parent.mkdir()
    with person_at(config) as page:
        answer = page.get("/config")
        assert "There is no such file yet" in answer.words
        assert text_in(answer) == '{\n  "mcpServers": {}\n}\n'
        page.submit("/config/save", draft=draft_in(differ(page, TEXT)))
        assert config.read_text() == TEXT
        assert stat.S_IMODE(config.stat().st_mode) == 0o600


@posix_only
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    config = written(tmp_path)
    (tmp_path / "history").write_text("in the way")
    with person_at(config) as page:
        draft = draft_in(differ(page, TEXT.replace("time", "clock")))
        done = page.submit("/config/save", draft=draft)
        assert done.headers["location"].endswith("done=saved&kept=no")
        assert "could not be kept" in page.get("/config?done=saved&kept=no").words


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"x" * (CONFIG_TEXT + 1), "larger than"), (b"\xff\xfe\x00", "not UTF-8"), (b"\0", "NUL")],
)
def test_a_file_that_cannot_be_edited_here_says_why(tmp_path: Path, data: bytes, why: str) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(data)
    with page_of(config) as page:
        page.sign_in()
        answer = page.get("/config")
        assert why in answer.words
        assert "mcpzip edit" in answer.words
        assert "<textarea" not in answer.text
        assert "<textarea" not in page.submit("/config/diff", text=TEXT).text


@posix_only
def test_a_broken_file_is_mended(tmp_path: Path) -> None:
    config = written(tmp_path, "{<script>")
    with person_at(config) as page:
        assert "Error , line 1, column 2" in page.get("/config").words
        answer = differ(page, TEXT)
        assert "The file can't be used as it is now" in answer.words
        page.submit("/config/save", draft=draft_in(answer))
        assert config.read_text() == TEXT


def test_hostile_texts_are_only_text(tmp_path: Path) -> None:
    server = {"command": MARKUP, "args": [MARKUP], MARKUP: MARKUP, "env": {MARKUP: f"${{{MARKUP}}}"}}
    text = json.dumps(
        {"mcpServers": {"evil": server, MARKUP: {}}, MARKUP: MARKUP}, ensure_ascii=False, indent=1
    )
    config = written(tmp_path, text)
    project = tmp_path / ".mcpzip.json"
    project.write_text(MARKUP)
    history = tmp_path / "history"
    history.mkdir()
    (history / f"config.json.{'1' * 13}-{'a' * 16}.json").write_text(MARKUP)
    with page_of(config) as page:
        page.sign_in()
        answers = [
            page.get("/config?done=%3Cscript%3E&kept=no"),
            page.submit("/config/check", text=text.replace("evil", "evil2"), base=MARKUP),
            page.submit("/config/check", text=text[:-1], part=MARKUP),
            page.submit("/config/diff", text=text.replace(" ", "  ", 1), base=MARKUP),
            page.submit("/config/undo", version=MARKUP),
            page.submit("/config/undo", version=f"{'1' * 13}-{'a' * 16}"),
            page.submit("/config/edit", draft=MARKUP),
            page.submit("/config/save", draft=MARKUP),
        ]
        for answer in answers:
            assert acting(answer.text) == []
            assert not set(without_field(answer)) & ACTING
        assert MARKUP.replace("\x07", "\\u0007").replace("\x1b", "\\u001b") in text_in(answers[0])
        assert "characters that nobody sees" in answers[0].words
        assert project.name in answers[0].words


def test_secrets_that_are_typed_are_not_repeated(page: Page) -> None:
    secret = "s3cr3t-of-mine"
    entry = {"url": "https://x.example/mcp", "headers": {"Authorization": f"Bearer {secret}"}}
    text = json.dumps({"mcpServers": {"x": entry}, "expose": secret})
    answer = page.submit("/config/check", text=text, part="1")
    assert "expose: found" in answer.words
    assert "s3cr3t" not in answer.text


def test_no_response_with_the_text_is_kept_by_the_browser(page: Page) -> None:
    answer = page.get("/config")
    assert answer.headers["cache-control"] == "no-store"
    assert 'autocomplete="off"' in answer.text
    assert 'spellcheck="false"' in answer.text
