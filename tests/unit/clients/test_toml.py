"""Tables of TOML, removed and added in place."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.clients.toml import TomlEditError, edited, entry_text

CODEX = '''\
# mine
model = "o3"

# the clock
[mcp_servers.time] # local
command = "uvx"
args = ["mcp-server-time"]

[mcp_servers.time.env]
TZ = "UTC"

# the rest
[tools]
note = """
[mcp_servers.time]
"""

[mcp_servers."li near"]
url = "https://linear.example/mcp"
'''


def test_a_table_goes_with_its_subtables_and_its_comment() -> None:
    after = edited(CODEX, ["mcp_servers"], ["time"], {})
    assert after == CODEX[: CODEX.index("# the clock")] + CODEX[CODEX.index("# the rest") :]


def test_what_is_added_stands_in_the_place_of_what_went() -> None:
    entry = {"command": "mcpzip", "args": ["serve"], "env": {"A b": "c"}}
    after = edited(CODEX, ["mcp_servers"], ["time", "li near"], {"mcpzip": entry})
    assert tomllib.loads(after)["mcp_servers"] == {"mcpzip": entry}
    assert after.index("[mcp_servers.mcpzip]") < after.index("# the rest")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_was_taken_out_comes_back_with_its_comments(newline: str) -> None:
    """An undone migration of a file that had changed lost the comments in Codex's entries."""
    text = CODEX.replace("\n", newline)
    taken = {name: entry_text(text, ["mcp_servers"], name) for name in ("time", "li near")}
    after = edited(text, ["mcp_servers"], list(taken), {"mcpzip": {"command": "mcpzip"}})
    back = edited(after, ["mcp_servers"], ["mcpzip"], taken)
    assert tomllib.loads(back) == tomllib.loads(text)
    assert "# the clock" + newline + "[mcp_servers.time] # local" + newline in back
    assert back.count("\n") == back.count(newline)


def test_an_entry_that_is_no_table_has_no_text() -> None:
    assert entry_text('[mcp_servers]\ntime = {command = "uvx"}\n', ["mcp_servers"], "time") == ""
    assert entry_text(CODEX, ["mcp_servers"], "none") == ""


def test_a_file_without_servers_gets_them_at_its_end() -> None:
    assert edited('model = "o3"', ["mcp_servers"], [], {"mcpzip": {"args": ["serve"]}}) == (
        'model = "o3"\n\n[mcp_servers.mcpzip]\nargs = ["serve"]\n'
    )
    assert edited("", ["mcp_servers"], [], {"m": {"a": True}}) == "[mcp_servers.m]\na = true\n"


def test_a_line_ends_as_the_others_do() -> None:
    after = edited(CODEX.replace("\n", "\r\n"), ["mcp_servers"], ["time"], {"m": {"env": {"a": "b"}}})
    assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize(
    "text",
    ["mcp_servers = {x = {command = 'x'}}", "[mcp_servers]\nx.command = 'x'", "[mcp_servers]\nx = {}\n"],
)
def test_what_is_no_table_of_its_own_is_refused(text: str) -> None:
    with pytest.raises(TomlEditError, match="can't be changed without"):
        edited(text, ["mcp_servers"], ["x"], {"mcpzip": {"command": "m"}})


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(TomlEditError, match="it is not TOML"):
        edited("a = ", ["mcp_servers"], [], {})


NAMES = st.text("abc-. \"'é", min_size=1, max_size=6)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
ENTRIES = st.fixed_dictionaries(
    {"command": TEXTS},
    optional={"args": st.lists(TEXTS, max_size=2), "env": st.dictionaries(NAMES, TEXTS, max_size=2)},
)


@given(st.dictionaries(NAMES, ENTRIES, max_size=4), st.dictionaries(NAMES, ENTRIES, max_size=2), st.data())
def test_an_edit_means_what_it_says_and_no_more(
    servers: dict[str, Any], add: dict[str, Any], data: st.DataObject
) -> None:
    text = edited('model = "o3" # kept\n', ["mcp_servers"], [], servers) + "\n[tail]\nx = 1 # kept\n"
    names = data.draw(st.lists(st.sampled_from(sorted(servers)), unique=True)) if servers else []
    after = edited(text, ["mcp_servers"], names, add)
    wanted = {name: entry for name, entry in servers.items() if name not in names} | add
    found = tomllib.loads(after)
    assert (found.get("mcp_servers", {}), found["model"], found["tail"]) == (wanted, "o3", {"x": 1})
    assert after.count("# kept") == 2
