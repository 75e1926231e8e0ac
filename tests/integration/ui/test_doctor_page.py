"""The page *Doctor*: what `mcpzip doctor` says, of a hostile server and of a config that can't be read."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.acting_markup import acting
from helpers.ui_client import Page, page_of
from helpers.ui_places import MARKUP, hostile_place

from mcpzip.config.paths import logs_folder
from mcpzip.proxy.heard import EVENT
from mcpzip.system.log_files import LogEntry, encoded, file_name

STARTED = "import os, sys; open({!r}, 'a').write('started '); print({!r}, file=sys.stderr); sys.exit(3)"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config whose every text is hostile: of two servers, of the log, and of its own fields."""
    config = hostile_place(tmp_path_factory.mktemp("ui"))
    document = json.loads(config.read_text())
    program = STARTED.format(str(config.parent / "starts"), MARKUP)
    document["mcpServers"] |= {
        "noisy": {"command": sys.executable, "args": ["-c", program]},
        "absent": {"command": MARKUP.replace("\x07", ""), "cwd": MARKUP},
        "odd": {"command": "x", MARKUP: MARKUP, "env": {"A": f"${{{MARKUP}}}"}},
    }
    document[MARKUP] = MARKUP
    config.write_text(json.dumps(document))
    folder = logs_folder(str(config))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    said = LogEntry(document.get("at", 2e9), "warning", 1, "evil", EVENT, MARKUP)
    Path(folder, file_name(config.name, "20261124T031500Z", 1, 1)).write_bytes(encoded(said))
    return config


@pytest.fixture(scope="module")
def page(place: Path) -> Iterator[Page]:
    with page_of(place) as page:
        yield page.sign_in()


def test_each_finding_is_shown_with_what_fixes_it(page: Page, place: Path) -> None:
    answer = page.get("/doctor")
    assert answer.status == 200
    words = answer.words
    assert "Error : absent" in words
    assert "Install it, or write its whole path" in words
    assert f"mcpzip edit --config {place}" in words
    assert "Servers: not asked" in words
    assert "One of its errors or questions reads as attacks do" in words
    assert not (place.parent / "starts").exists(), "to look at the page starts no server"


def test_servers_are_started_by_the_button_only(page: Page, place: Path) -> None:
    for refused in (page.post("/doctor/servers", {}), page.get("/doctor/servers")):
        assert refused.status in (403, 404)
    assert not (place.parent / "starts").exists()
    answer = page.submit("/doctor/servers")
    assert answer.status == 200
    assert (place.parent / "starts").read_text().startswith("started")
    assert "Every server was started once" in answer.words
    assert "exited with code 3" in answer.words
    assert acting(answer.text) == []
    assert not set(answer.text) & set("\u202e\u200b\x1b\x07")
    assert "alert(1)" in answer.words


def test_hostile_texts_are_only_text(page: Page) -> None:
    answer = page.get("/doctor")
    assert acting(answer.text) == []
    assert not set(answer.text) & set("\u202e\u200b\x1b\x07")
    assert "<img src=x onerror=alert(1)>" in answer.words
    assert "{{ 7919*7919 }}" in answer.words


def test_nothing_is_changed(page: Page, place: Path) -> None:
    os.chmod(place, 0o644)
    before = place.stat()
    page.get("/doctor")
    assert (place.stat().st_mode, place.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_a_config_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{<script>\u202e")
    with page_of(config) as page:
        answer = page.sign_in().get("/doctor")
        assert answer.status == 200
        assert "Error" in answer.words
        assert str(config) in answer.words
        assert acting(answer.text) == []
        assert page.submit("/doctor/servers").status == 200
