"""Edits of mcpzip's own config file."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.clients.config_file import ConfigFile, entry_of, entry_of_json
from mcpzip.clients.migration import MigrationError, write
from mcpzip.model.errors import ConfigError

TIME = {"command": "uvx", "args": ["mcp-server-time"]}
CONFIG = b"""\xef\xbb\xbf{\r
\t"// note": "of mine",\r
\t"mcpServers": {\r
\t\t"time": {"command": "uvx",   "args": ["mcp-server-time"]},\r
\t\t"web": {\r
\t\t\t"url": "https://web.example/mcp"\r
\t\t}\r
\t},\r
\t"idle_timeout_minutes": 7\r
}\r
"""


def opened(tmp_path: Path, data: bytes | None = CONFIG) -> ConfigFile:
    path = tmp_path / "config.json"
    if data is not None:
        path.write_bytes(data)
    return ConfigFile(str(path), {})


def test_an_added_server_leaves_every_other_byte(tmp_path: Path) -> None:
    change = opened(tmp_path).add("git", {"command": "uvx", "args": ["mcp-server-git"]})
    before, _, rest = CONFIG.partition(b'"https://web.example/mcp"\r\n\t\t}')
    assert change.after.startswith(before)
    assert change.after.endswith(rest)
    assert json.loads(change.after.decode("utf-8-sig"))["mcpServers"]["git"]["args"] == ["mcp-server-git"]


def test_the_first_server_makes_the_file(tmp_path: Path) -> None:
    write(opened(tmp_path, None).add("time", TIME))
    path = tmp_path / "config.json"
    assert json.loads(path.read_bytes()) == {"mcpServers": {"time": TIME}}


def test_a_removed_server_leaves_the_others(tmp_path: Path) -> None:
    change = opened(tmp_path).remove(["web"])
    assert json.loads(change.after.decode("utf-8-sig"))["mcpServers"] == {"time": TIME}
    assert b'idle_timeout_minutes": 7\r\n}' in change.after


def test_a_renamed_server_keeps_its_place_and_its_text(tmp_path: Path) -> None:
    change = opened(tmp_path).rename("time", "clock")
    assert change.after == CONFIG.replace(b'"time"', b'"clock"')


@st.composite
def configs(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from(["a", "b", "c-d", "e.f"]), min_size=1, max_size=3, unique=True))
    servers = {name: {"command": draw(st.sampled_from(["x", "uvx"]))} for name in names}
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    text = json.dumps({"mcpServers": servers, "_kept": draw(st.text(max_size=5))}, indent=indent)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()


@given(configs())
def test_what_is_switched_off_and_on_again_is_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("config")
    names = list(json.loads(data)["mcpServers"])
    off = opened(folder, data).enable(names, enabled=False)
    assert all(entry["disabled"] is True for entry in json.loads(off.after)["mcpServers"].values())
    assert opened(folder, off.after).enable(names, enabled=True).after == data


@pytest.mark.parametrize("enabled", [True, False])
def test_switching_twice_changes_nothing_more(tmp_path: Path, enabled: bool) -> None:
    once = opened(tmp_path).enable(["time"], enabled=enabled).after
    assert opened(tmp_path, once).enable(["time"], enabled=enabled).after == once


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda file: file.add("time", TIME), "there is such a server already; choose another name, or"),
        (lambda file: file.add("a__b", TIME), "contains '__'"),
        (lambda file: file.add("x", {"args": []}), "neither a command nor a url"),
        (lambda file: file.remove(["tim"]), "there is no such server; the nearest: time"),
        (lambda file: file.remove(["zzzzzz"]), "there is no such server; the servers: time, web"),
        (lambda file: file.rename("time", "web"), "there is such a server already"),
        (lambda file: file.enable(["zzzzzz"], enabled=True), "there is no such server"),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused(tmp_path: Path, edit: object, reason: str) -> None:
    file = opened(tmp_path)
    with pytest.raises(ConfigError, match=reason):
        edit(file)  # type: ignore[operator]
    assert (tmp_path / "config.json").read_bytes() == CONFIG


@pytest.mark.parametrize("data", [b"{", b'{"mcpServers": []}', b"\xff\xfe{}"])
def test_an_invalid_file_is_not_edited(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConfigError):
        opened(tmp_path, data)


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    change = opened(tmp_path).remove(["web"])
    (tmp_path / "config.json").write_bytes(b"{}")
    with pytest.raises(MigrationError, match="changed meanwhile"):
        write(change)
    assert (tmp_path / "config.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("words", "options", "entry"),
    [
        (["uvx", "mcp-server-time"], {}, TIME),
        (["uvx mcp-server-time"], {}, TIME),
        (["x"], {"env": ["A=b=c"], "cwd": "/w"}, {"command": "x", "env": {"A": "b=c"}, "cwd": "/w"}),
        (["https://x.example/mcp"], {}, {"url": "https://x.example/mcp"}),
        (
            ["HTTPS://x.example/sse"],
            {"transport": "sse", "headers": ["Authorization: Bearer a:b"]},
            {"type": "sse", "url": "HTTPS://x.example/sse", "headers": {"Authorization": "Bearer a:b"}},
        ),
    ],
)
def test_a_command_line_becomes_an_entry(
    words: list[str], options: dict[str, object], entry: dict[str, object]
) -> None:
    all_options: dict[str, object] = {"transport": None, "env": [], "headers": [], "cwd": None}
    assert entry_of(words, **(all_options | options)) == entry  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "options", "reason"),
    [
        (["x"], {"env": ["A"]}, "'A' has no '=': write --env KEY=value"),
        (["https://x.example"], {"headers": ["no colon"]}, "has no ':': write --header 'Name: value'"),
        (["x"], {"headers": ["A: b"]}, "need a URL, but 'x' is none"),
        (["x"], {"transport": "sse"}, "need a URL"),
        (["https://x.example"], {"env": ["A=b"]}, "are for commands"),
        (["https://x.example", "more"], {}, "Nothing may follow a URL, but 'more' does"),
    ],
)
def test_a_command_line_that_makes_no_sense_says_what_to_write(
    words: list[str], options: dict[str, object], reason: str
) -> None:
    all_options: dict[str, object] = {"transport": None, "env": [], "headers": [], "cwd": None}
    with pytest.raises(ValueError, match=reason):
        entry_of(words, **(all_options | options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (json.dumps(TIME), TIME),
        (json.dumps({"mcpServers": {"t": TIME}}), TIME),
        ('{"httpUrl": "https://x.example"}', {"url": "https://x.example"}),
        ('{"serverUrl": "https://x.example"}', {"url": "https://x.example"}),
    ],
)
def test_json_becomes_an_entry(text: str, entry: dict[str, object]) -> None:
    assert entry_of_json(text) == entry


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '{"mcpServers": {"x": 5}}', "[" * 100_000])
def test_other_json_is_no_entry(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|object"):
        entry_of_json(text)
