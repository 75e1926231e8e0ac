"""What a client is shown in each mode, and what it calls by the names it is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, allowed, merge
from mcpzip.config import Config, SearchConfig, ServerConfig
from mcpzip.model.errors import InvalidCursorError
from mcpzip.model.names import join, shown_names
from mcpzip.proxy import metatools
from mcpzip.proxy.exposure import Exposure, shown_tool

META = ["search_tools", "describe_tool", "execute_tool"]
SCHEMA = b'{"type":"object"}'


def tool(name: str, **fields: object) -> bytes:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}, **fields}).encode()


def catalog(**servers: list[str]) -> Catalog:
    return merge(Catalog(), [Listed(name, tuple(map(tool, tools)), 1.0) for name, tools in servers.items()])


def config(expose: str = "meta", split: bool = False, /, **servers: dict[str, object]) -> Config:
    read = {name: ServerConfig(name, "stdio", "x", **fields) for name, fields in servers.items()}
    return Config("/c.json", read, SearchConfig(default_limit=7), expose=expose, split=split)


def exposure(said: Config, known: Catalog) -> Exposure:
    return Exposure(said, allowed(known, said.servers))


def tools(shown: Exposure) -> list[str]:
    found, cursor = [], None
    while True:
        page = json.loads(shown.tools_page(cursor))
        found += [each["name"] for each in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            return found


def shown_name(server: str, tool: str) -> str:
    """The name by which a tool is shown that is shown alone."""
    (shown,) = shown_names([join(server, tool)])
    return shown


SPACED = shown_name("docs", "a b")
TWO = catalog(slack=["send", "get_x", "get_y"], docs=["read", "a b"])


def test_without_pins_the_list_is_the_three_whatever_is_known():
    shown = exposure(config(slack={}, docs={}), TWO)
    assert json.loads(shown.tools_page()) == {"tools": metatools.definitions(7)}
    assert shown.tools_version == Exposure(config(slack={}, docs={}), Catalog()).tools_version
    assert shown.tool_named("slack__send") is None
    assert shown.tool_named("search_tools") is None


def test_a_split_shows_one_more_and_that_is_a_change():
    one, two = (exposure(config("meta", split, slack={}, docs={}), TWO) for split in (False, True))
    assert json.loads(two.tools_page()) == {"tools": metatools.definitions(7, split=True)}
    assert two.is_static
    assert one.tools_version != two.tools_version


@pytest.mark.parametrize(
    ("pins", "seen"),
    [
        ({"slack": ("send",)}, ["slack__send"]),
        ({"slack": ("get_*", "nothing")}, ["slack__get_x", "slack__get_y"]),
        ({"slack": ("*",)}, ["slack__get_x", "slack__get_y", "slack__send"]),
        ({"docs": ("read",), "slack": ("get_x",)}, ["docs__read", "slack__get_x"]),
        ({"docs": ("a b",)}, [SPACED]),
        ({"slack": ("GET_*",)}, []),
    ],
)
def test_pinned_tools_stand_beside_the_three(pins, seen):
    shown = exposure(config(**{name: {"pin": pins.get(name, ())} for name in ("slack", "docs")}), TWO)
    assert tools(shown) == META + seen
    assert [shown.tool_named(name).name for name in seen] == [
        entry.name for entry in TWO.entries if shown_name(entry.server, entry.tool) in seen
    ]
    others = {entry.name for entry in TWO.entries} - {shown.tool_named(name).name for name in seen}
    assert [name for name in others if shown.tool_named(name)] == []


def test_a_shown_name_calls_the_tool_that_is_shown_by_it():
    likeness = shown_name("a.b", "c")
    both = catalog(**{"a.b": ["c"], "a_b": [likeness.removeprefix("a_b__")]})
    shown = exposure(config("direct", **{"a.b": {}, "a_b": {}}), both)
    assert shown.tool_named(likeness) == both.get("a.b__c")
    assert len({*tools(shown)}) == 2


def test_a_pinned_tool_that_is_hidden_is_hidden():
    for fields in ({"tools_deny": ("send",)}, {"tools_allow": ("get_*",)}, {"disabled": True}):
        shown = exposure(config(slack={"pin": ("send",), **fields}), TWO)
        assert tools(shown) == META
        assert shown.tool_named("slack__send") is None


def test_direct_shows_every_tool_by_its_name_and_nothing_else():
    shown = exposure(config("direct", slack={"pin": ("send",)}, docs={}), TWO)
    assert tools(shown) == [SPACED, "docs__read", "slack__get_x", "slack__get_y", "slack__send"]
    assert shown.tool_named(SPACED) == shown.tool_named("docs__a b") == TWO.get("docs__a b")
    assert shown.tool_named("slack__send") == TWO.get("slack__send")
    assert [shown.tool_named(name) for name in ("send", "search_tools", "slack__", "")] == [None] * 4
    assert json.loads(shown.tools_page())["tools"][1]["inputSchema"] == {"type": "object"}


def test_transparent_is_the_one_server_to_the_byte():
    raws = (b'{ "name" : "b__c d", "x": 1E2 }', b'{"inputSchema":null,"name":"a"}')
    known = merge(Catalog(), [Listed("one", raws, 1.0)])
    shown = exposure(config("transparent", one={}, off={"disabled": True}), known)
    assert shown.transparent_server == "one"
    assert shown.tools_page() == b'{"tools":[%b,%b]}' % (raws[1], raws[0])
    assert shown.tool_named("b__c d").raw == raws[0]
    assert [shown.tool_named(name) for name in ("one__a", "search_tools")] == [None, None]
    assert exposure(config("transparent", one={}), Catalog()).tools_page() == b'{"tools":[]}'
    assert exposure(config(one={}), known).transparent_server is None


@pytest.mark.parametrize("expose", ["meta", "direct"])
def test_a_shown_tool_is_what_its_server_said_but_for_its_name(expose):
    raw = (
        b'{ "title":"\\u00e9 \\/", "name" : "t", "x":[1.0, 1E2], "inputSchema":{ "type":"object", "a":-0 } }'
    )
    shown = exposure(config(expose, s={"pin": ("*",)}), merge(Catalog(), [Listed("s", (raw,), 1.0)]))
    assert raw.replace(b'"t"', b'"s__t"') in shown.tools_page()


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (b'{"type":"object"}', b'{"type":"object"}'),
        (b'{ "a":1.0, "type" : "object" }', b'{ "a":1.0, "type" : "object" }'),
        (b"{}", b'{"type":"object"}'),
        (
            b'{"properties":{"type":{"type":"object"}}}',
            b'{"properties":{"type":{"type":"object"}},"type":"object"}',
        ),
        (b'{"type":"string","x":1E2}', b'{"type":"object","x":1E2}'),
        (b'{"type":["object","null"]}', b'{"type":"object"}'),
        (b'{"$ref":"#/$defs/a"}', b'{"$ref":"#/$defs/a","type":"object"}'),
        (b"null", b'{"type":"object"}'),
        (b"[]", b'{"type":"object"}'),
        (b"true", b'{"type":"object"}'),
    ],
)
def test_a_schema_that_hosts_would_refuse_is_of_type_object(schema, shown):
    given_ = b'{"name":"t","inputSchema":%b,"z":1.0}' % schema
    assert shown_tool(given_, "s__t") == b'{"name":"s__t","inputSchema":%b,"z":1.0}' % shown


def test_a_tool_without_a_schema_gets_one():
    assert shown_tool(b'{"name":"t"}', "s__t") == b'{"name":"s__t","inputSchema":{"type":"object"}}'


NAMES = st.text("ab_. é", min_size=1, max_size=4) | st.text("t", min_size=58, max_size=64)
CATALOGS = st.dictionaries(
    st.sampled_from(["a", "a.b", "b_c"]), st.lists(NAMES, max_size=5, unique=True), max_size=3
).map(lambda servers: catalog(**servers))
ALL = {"a": {}, "a.b": {}, "b_c": {}}


@given(known=CATALOGS)
def test_every_tool_shown_directly_can_be_called_by_the_name_shown_and_by_its_whole_name(known):
    shown = exposure(config("direct", **ALL), known)
    called = [shown.tool_named(name) for name in tools(shown)]
    assert sorted(called, key=lambda entry: entry.name) == list(known.entries)
    assert [shown.tool_named(entry.name) for entry in known.entries] == list(known.entries)


@given(known=CATALOGS, globs=st.lists(st.sampled_from(["*", "a*", "?", "b"]), max_size=2).map(tuple))
def test_the_list_is_the_same_in_every_run(known, globs):
    said = config("meta", **{name: {"pin": globs} for name in ALL})
    one, other = exposure(said, known), exposure(said, merge(known, [Failed("a", "it is down", 2.0)]))
    assert one.tools_page() == other.tools_page()
    assert one.tools_version == other.tools_version


def test_a_version_changes_when_its_list_does():
    said = config("meta", slack={"pin": ("send",)}, docs={})
    base = exposure(said, TWO)
    same = exposure(said, merge(TWO, [Listed("docs", (tool("new"),), 2.0)]))
    changed = exposure(said, merge(TWO, [Listed("slack", (tool("send", title="Send"),), 2.0)]))
    gone = exposure(said, merge(TWO, [Listed("slack", (), 2.0)]))
    assert base.tools_version == same.tools_version
    assert len({base.tools_version, changed.tools_version, gone.tools_version}) == 3
    offering = merge(TWO, [Listed("docs", (), 2.0, prompts=(b'{"name":"p"}',), resources=(b'{"uri":"r"}',))])
    other = exposure(said, offering)
    assert other.tools_version == base.tools_version
    assert other.prompts_version != base.prompts_version
    assert other.resources_version != base.resources_version


def test_many_tools_are_several_pages_each_called_by_its_name():
    raws = tuple(tool(f"t{n}", description="d" * 2_000) for n in range(400))
    shown = exposure(config("direct", s={}), merge(Catalog(), [Listed("s", raws, 1.0)]))
    assert "nextCursor" in json.loads(shown.tools_page())
    assert len(set(tools(shown))) == 400
    for page in (shown.tools_page, shown.prompts_page, shown.resources_page, shown.templates_page):
        with pytest.raises(InvalidCursorError):
            page("bad")
