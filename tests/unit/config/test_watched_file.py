"""The config file of a running mcpzip: which looks at it bring a config, an error or nothing."""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpzip.config.paths import config_path
from mcpzip.config.project import approve
from mcpzip.config.watched_file import COARSE, WatchedFile
from mcpzip.model.errors import ConfigError

ENV = {"TOKEN": "x"}


def text(*servers: str, **keys: object) -> str:
    return json.dumps({"mcpServers": {name: {"command": name} for name in servers}, **keys})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    config = tmp_path / "config.json"
    config.write_text(text("a"))
    return config


@pytest.fixture
def file(path: Path) -> WatchedFile:
    file = WatchedFile(str(path), ENV)
    assert [*file.load().servers] == ["a"]
    assert file.changed() is None
    return file


def servers(file: WatchedFile) -> list[str] | None:
    config = file.changed()
    return None if config is None else [*config.servers]


def test_an_edit_is_seen_once(path: Path, file: WatchedFile) -> None:
    path.write_text(text("a", "b"))
    assert servers(file) == ["a", "b"]
    assert file.data == path.read_bytes()
    assert file.changed() is None


def test_a_file_that_was_touched_or_written_anew_is_not_an_edit(path: Path, file: WatchedFile) -> None:
    os.utime(path, (1, 1))
    assert file.changed() is None
    path.write_text(text("a"))
    assert file.changed() is None


def replace(path: Path, content: str) -> None:
    other = path.with_name("other.json")
    other.write_text(content)
    os.replace(other, path)


def rewrite(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


@pytest.mark.parametrize("write", [Path.write_text, replace, rewrite])
def test_editors_write_in_several_ways(
    path: Path, file: WatchedFile, write: Callable[[Path, str], object]
) -> None:
    for names in (["b"], ["c"], ["a"]):
        write(path, text(*names))
        assert servers(file) == names


def test_an_edit_within_one_tick_of_the_clock_is_seen(
    path: Path, file: WatchedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, same times."""
    stopped = os.stat(path)
    monkeypatch.setattr(
        "mcpzip.config.watched_file._version", lambda path: (stopped.st_mode, stopped.st_mtime_ns)
    )
    path.write_text(text("b"))
    assert servers(file) == ["b"]
    monkeypatch.setattr("time.time", lambda: stopped.st_mtime + COARSE + 1)
    path.write_text(text("c"))
    assert file.changed() is None  # a file of which nothing has changed for long is not read


def test_a_link_is_followed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(text(name))
    link = tmp_path / "link.json"
    link.symlink_to("a.json")
    file = WatchedFile(str(link), ENV)
    assert [*file.load().servers] == ["a"]
    (tmp_path / "a.json").write_text(text("a", "c"))
    assert servers(file) == ["a", "c"]
    link.unlink()
    link.symlink_to("b.json")
    assert servers(file) == ["b"]


def test_a_half_written_file_is_waited_for(path: Path, file: WatchedFile) -> None:
    whole = text("a", "b")
    for end in (0, 5, len(whole) - 1):
        path.write_text(whole[:end])
        assert file.changed() is None
    path.write_text(whole)
    assert servers(file) == ["a", "b"]


@pytest.mark.parametrize("broken", ["", "{", '{"mcpServers": []}', '{"mcpServers": {}, "expose": "x"}'])
def test_a_broken_file_is_refused_once(path: Path, file: WatchedFile, broken: str) -> None:
    path.write_text(broken)
    assert file.changed() is None
    with pytest.raises(ConfigError):
        file.changed()
    assert file.changed() is None
    os.utime(path, (1, 1))
    assert file.changed() is None
    path.write_text(text("a"))
    assert servers(file) == ["a"]  # as it was, but the refusal is over


def test_a_file_that_is_gone_for_a_moment_is_missed_by_nobody(path: Path, file: WatchedFile) -> None:
    path.unlink()
    assert file.changed() is None
    path.write_text(text("a"))
    assert file.changed() is None
    path.unlink()
    assert file.changed() is None
    with pytest.raises(ConfigError, match="no such file"):
        file.changed()
    assert file.changed() is None
    path.mkdir()
    assert file.changed() is None
    with pytest.raises(ConfigError, match="folder"):
        file.changed()


def test_a_mistake_in_an_entry_costs_that_server_only(path: Path, file: WatchedFile) -> None:
    path.write_text('{"mcpServers": {"a": {"command": 7}, "b": {"command": "b"}}}')
    config = file.changed()
    assert config is not None
    assert [server.problem is None for server in config.servers.values()] == [False, True]


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_mcpzip_starts_without_a_config_where_none_is_required(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "nowhere" / "config.json"
    if content is not None:
        path.parent.mkdir()
        path.write_text(content)
    with pytest.raises(ConfigError):
        WatchedFile(str(path), ENV).load()
    file = WatchedFile(str(path), ENV)
    config = file.load(required=False)
    assert config.servers == {}
    assert config.path == str(path)
    assert file.problem is not None
    assert file.changed() is file.changed() is None
    path.parent.mkdir(exist_ok=True)
    path.write_text(text("a"))
    assert servers(file) == ["a"]


def test_a_config_in_the_other_folder_is_named_once_if_there_was_none(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    file = WatchedFile(config_path(None, env), env)
    file.load(required=False)
    other = tmp_path / ".config" / "mcpzip" / "config.json"
    other.parent.mkdir(parents=True)
    other.write_text(text("a"))
    with pytest.raises(ConfigError, match=re.escape(str(other)) + ".*restart"):
        file.changed()
    assert file.changed() is None
    path = Path(file.path)
    path.parent.mkdir(parents=True)
    path.write_text(text("b"))
    assert servers(file) == ["b"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": 1}'])
def test_mcpzip_does_not_start_with_a_broken_config(path: Path, broken: str) -> None:
    path.write_text(broken)
    with pytest.raises(ConfigError):
        WatchedFile(str(path), ENV).load(required=False)


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
def test_a_pipe_is_read_once(tmp_path: Path, path: Path, file: WatchedFile) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(text("a"),))
    writer.start()
    once = WatchedFile(str(pipe), ENV)
    assert [*once.load().servers] == ["a"]
    writer.join()
    assert once.changed() is None
    assert once.data == b""
    os.replace(pipe, path)
    assert file.changed() is None
    with pytest.raises(ConfigError, match="not a file"):
        file.changed()


def test_a_project_that_the_config_cannot_be_used_with_is_refused_once(path: Path, tmp_path: Path) -> None:
    """The config itself is as it was: it shows one server transparently."""
    path.write_text(text("a", expose="transparent"))
    project = tmp_path / ".mcpzip.json"
    file = WatchedFile(str(path), ENV, str(project))
    file.load()
    project.write_text(text("b"))
    approve(str(project), project.read_bytes(), str(path))
    assert file.changed() is None
    with pytest.raises(ConfigError, match="exactly one server"):
        file.changed()
    assert file.changed() is None
    project.write_text(text("a"))
    approve(str(project), project.read_bytes(), str(path))
    assert servers(file) == ["a"]
    assert file.changed() is None
