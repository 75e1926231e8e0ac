"""The table beside a snapshot: what is read by it is what the snapshot says, or it is not used."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, merge, snapshot, tool_table
from mcpzip.model import limits
from mcpzip.model.entry import StoredTexts

CONFIG = "/home/me/config.json"
TOOLS = (
    b'{ "name":"send","description":"Sends \xc3\xa9","annotations":{"title":"Send it","readOnlyHint":true}}',
    b'{"name":"drop","title":"Drop","annotations":{"idempotentHint":true},"inputSchema":{"type":"object"}}',
    b'{"name":"odd","title":7,"description":null,"annotations":[]}',
)
CATALOG = merge(
    Catalog(),
    [
        Listed("slack", TOOLS, 1.5, "2025-11-25", "abcd", prompts=(b'{"name":"p"}',), info=b'{"name":"S"}'),
        Listed("empty", (), 2.0),
        Listed("shop", TOOLS[:1], 3.0),
        Failed("never", "no such command", 5.0),
    ],
)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache" / "tools.json")


def refuse(*_):
    raise AssertionError("the snapshot was decoded")


@pytest.fixture
def undecoded(monkeypatch):
    """No snapshot may be decoded."""
    monkeypatch.setattr(snapshot, "_ours", refuse)


def both(path):
    """The catalog by the table, and without it."""
    by_table = snapshot.load(path, CONFIG)
    os.unlink(tool_table.path_of(path))
    return by_table, snapshot.load(path, CONFIG)


def members(catalog):
    return [
        (each.server, each.tool, each.raw, each.title, each.description, each.read_only, each.idempotent)
        for each in catalog.entries
    ]


def test_a_table_says_what_the_snapshot_does(path):
    snapshot.save(path, CONFIG, CATALOG)
    (by_table, warnings), (without, others) = both(path)
    assert warnings == others == ()
    assert by_table == without == CATALOG
    assert by_table.version == without.version == CATALOG.version
    assert members(by_table) == members(without) == members(CATALOG)
    assert [each.digest for each in by_table.entries] == [each.digest for each in CATALOG.entries]
    assert [each.input_schema() for each in by_table.entries] == [
        each.input_schema() for each in CATALOG.entries
    ]


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
listings = st.dictionaries(
    st.sampled_from(["a", "b", "c-d", "e.f"]), st.lists(st.tuples(names, names, st.booleans()), max_size=5)
)


@given(listings)
def test_so_it_does_of_any_tools(tmp_path_factory, made):
    path = str(tmp_path_factory.mktemp("any") / "tools.json")
    updates = [
        Listed(
            server,
            tuple(
                json.dumps(
                    {"name": name, "description": text, "annotations": {"readOnlyHint": reads}}
                ).encode()
                for name, text, reads in tools
            ),
            1.0,
        )
        for server, tools in made.items()
    ]
    catalog = merge(Catalog(), updates)
    snapshot.save(path, CONFIG, catalog)
    (by_table, _), (without, _) = both(path)
    assert by_table == without == catalog
    assert members(by_table) == members(without) == members(catalog)


def test_a_start_decodes_no_tool(path, undecoded):
    snapshot.save(path, CONFIG, CATALOG)
    catalog = snapshot.load(path, CONFIG)[0]
    assert len(catalog) == 4
    assert all(isinstance(each._source, StoredTexts) and each._texts is None for each in catalog.entries)
    tool = catalog.get("slack__send")
    assert tool is not None
    assert (tool.title, tool.description) == ("Send it", "Sends é")
    assert tool._texts is not None
    assert tool.read() == TOOLS[0]
    assert isinstance(tool._source, StoredTexts)
    assert tool.raw is tool.raw  # from now on it is kept
    assert tool.raw == TOOLS[0]


def test_tools_read_by_it_are_kept_again(path):
    snapshot.save(path, CONFIG, CATALOG)
    loaded = snapshot.load(path, CONFIG)[0]
    snapshot.save(path, CONFIG, merge(loaded, [Listed("shop", TOOLS[1:2], 4.0)]))
    again = snapshot.load(path, CONFIG)[0]
    assert [each.raw for each in again.servers["slack"].entries] == [TOOLS[1], TOOLS[2], TOOLS[0]]
    assert [each.raw for each in again.servers["shop"].entries] == [TOOLS[1]]
    assert [each.raw for each in loaded.servers["shop"].entries] == [
        TOOLS[0]
    ]  # in the file that was replaced


def damage(path, change):
    table = tool_table.path_of(path)
    with open(table, "rb") as file:
        data = file.read()
    with open(table, "wb") as file:
        file.write(change(data))


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_table_is_not_used(tmp_path_factory, place, bits):
    path = str(tmp_path_factory.mktemp("damaged") / "tools.json")
    snapshot.save(path, CONFIG, CATALOG)
    damage(path, lambda data: _flipped(data, place % len(data), bits))
    assert snapshot.load(path, CONFIG) == (CATALOG, ())


def _flipped(data, place, bits):
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


@pytest.mark.parametrize("change", [lambda _: b"", lambda data: data[:50], lambda data: data + b" "])
def test_nor_is_one_of_another_length(path, change):
    snapshot.save(path, CONFIG, CATALOG)
    damage(path, change)
    assert snapshot.load(path, CONFIG) == (CATALOG, ())


def test_one_of_another_snapshot_is_not_used(path):
    snapshot.save(path, CONFIG, CATALOG)
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data.replace(b"Sends", b"Reads"))
    catalog = snapshot.load(path, CONFIG)[0]
    tool = catalog.get("slack__send")
    assert tool is not None
    assert tool.description == "Reads é"


@pytest.mark.parametrize("other", ["NAME", "MEMBERS"])
def test_nor_is_one_with_other_limits(path, monkeypatch, other):
    snapshot.save(path, CONFIG, CATALOG)
    monkeypatch.setattr(limits, other, getattr(limits, other) + 1)
    monkeypatch.setattr(snapshot, "_ours", lambda path, *_: (Catalog(), (path,)))
    assert snapshot.load(path, CONFIG) == (Catalog(), (path,))


def test_nor_that_of_another_config(path):
    snapshot.save(path, CONFIG, CATALOG)
    catalog, warnings = snapshot.load(path, "/home/you/config.json")
    assert catalog == Catalog()
    assert "belongs to another config" in warnings[0]


def test_without_room_for_a_table_there_is_none(path, undecoded, monkeypatch):
    snapshot.save(path, CONFIG, CATALOG)
    os.unlink(tool_table.path_of(path))
    os.mkdir(tool_table.path_of(path))
    assert snapshot.save(path, CONFIG, CATALOG) == ()
    with pytest.raises(AssertionError, match="decoded"):
        snapshot.load(path, CONFIG)


def test_a_server_without_its_lists_has_none_in_the_table(path, undecoded, monkeypatch):
    monkeypatch.setattr(limits, "SNAPSHOT_SERVER", 300)
    assert len(snapshot.save(path, CONFIG, CATALOG)) == 1
    servers = snapshot.load(path, CONFIG)[0].servers
    assert servers["slack"].entries == ()
    assert "too many to be stored" in (servers["slack"].error or "")
    assert [each.raw for each in servers["shop"].entries] == [TOOLS[0]]


def test_a_text_that_is_gone_is_empty(path):
    snapshot.save(path, CONFIG, CATALOG)
    tool = snapshot.load(path, CONFIG)[0].get("slack__send")
    assert tool is not None
    with open(path, "r+b") as file:
        file.truncate(0)
    if os.name != "nt":
        assert (tool.title, tool.description, tool.definition(), tool.input_schema()) == ("", "", {}, {})
