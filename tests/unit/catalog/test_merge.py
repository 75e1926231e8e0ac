"""Merging: what a server says replaces what was known of it, and of no other."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, ServerRecord, allowed, merge, retain
from mcpzip.config import ServerConfig


def tool(name: str, **fields: object) -> bytes:
    return json.dumps({"name": name, **fields}).encode()


def listed(server: str = "slack", *tools: str | bytes, at: float = 1.0, **fields: str) -> Listed:
    return Listed(server, tuple(t if isinstance(t, bytes) else tool(t) for t in tools), at, **fields)


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries]


SERVERS = st.sampled_from(["a", "b", "c"])
TIMES = st.floats(0, 4).map(round)
UPDATES = st.lists(
    st.builds(
        Listed,
        SERVERS,
        st.lists(st.sampled_from([tool("x"), tool("y"), tool("x", v=2), b"junk", b"{}"]), max_size=3).map(
            tuple
        ),
        TIMES,
        st.sampled_from([None, "2025-11-25"]),
        st.sampled_from(["", "f1"]),
        prompts=st.lists(st.sampled_from([b'{"name":"p"}', b'{"name":"q"}', b"{}"]), max_size=2).map(tuple),
        resources=st.lists(st.sampled_from([b'{"uri":"x:y"}', b'{"uri":"x:y","a":1}', b"7"]), max_size=2).map(
            tuple
        ),
        templates=st.lists(st.just(b'{"uriTemplate":"x:{y}"}'), max_size=2).map(tuple),
        capabilities=st.sampled_from([b"{}", b'{"prompts":{}}', b"[]"]),
        info=st.sampled_from([b"", b'{"name":"n"}', b"junk"]),
        ttl=st.sampled_from([None, 1.0, 60.0]),
    )
    | st.builds(Failed, SERVERS, st.sampled_from(["it is down", "it is slow"]), TIMES),
    max_size=6,
)
CATALOGS = UPDATES.map(lambda updates: merge(Catalog(), updates))


@given(CATALOGS, UPDATES)
def test_merging_twice_is_merging_once(catalog, updates):
    once = merge(catalog, updates)
    assert merge(once, updates) == once


@given(CATALOGS, UPDATES, st.randoms(use_true_random=False))
def test_the_order_of_the_updates_does_not_matter(catalog, updates, random):
    shuffled = random.sample(updates, len(updates))
    assert merge(catalog, shuffled) == merge(catalog, updates)


@given(CATALOGS, UPDATES)
def test_a_server_that_no_update_names_is_not_touched(catalog, updates):
    merged = merge(catalog, updates)
    told = {update.server for update in updates}
    for name in catalog.servers.keys() - told:
        assert merged.servers[name] is catalog.servers[name]
    assert merged.servers.keys() == catalog.servers.keys() | told


@given(CATALOGS, UPDATES)
def test_servers_can_be_merged_one_at_a_time(catalog, updates):
    one_by_one = catalog
    for server in sorted({update.server for update in updates}, reverse=True):
        one_by_one = merge(one_by_one, [update for update in updates if update.server == server])
    assert one_by_one == merge(catalog, updates)


@given(CATALOGS, UPDATES)
def test_the_catalog_merged_into_stays_as_it_was(catalog, updates):
    before = (dict(catalog.servers), catalog.version, catalog.entries)
    merge(catalog, updates)
    assert (dict(catalog.servers), catalog.version, catalog.entries) == before


def test_a_server_that_answers_has_exactly_what_it_lists():
    first = merge(Catalog(), [listed("slack", "b", "a", protocol="2025-11-25", fingerprint="f")])
    assert names(first) == ["slack__a", "slack__b"]
    second = merge(first, [listed("slack", "c", at=2.0)])
    assert names(second) == ["slack__c"]
    assert second.servers["slack"].protocol is None
    third = merge(second, [listed("slack", at=3.0)])
    assert names(third) == []
    assert third.servers["slack"] == ServerRecord("slack", fetched_at=3.0)


def test_a_server_that_fails_keeps_its_tools_and_says_since_when():
    # The original took a JSON-RPC error for an empty list and wiped the server's tools.
    known = merge(Catalog(), [listed("slack", "a", protocol="2025-11-25")])
    failed = merge(known, [Failed("slack", "it exited with code 1", 5.0)])
    still = merge(failed, [Failed("slack", "it didn't answer", 9.0)])
    assert names(failed) == names(still) == ["slack__a"]
    record = still.servers["slack"]
    assert (record.stale, record.error, record.stale_since) == (True, "it didn't answer", 5.0)
    assert (record.fetched_at, record.protocol) == (1.0, "2025-11-25")
    well = merge(still, [listed("slack", "a", at=10.0)]).servers["slack"]
    assert (well.stale, well.error, well.stale_since) == (False, None, None)
    again = merge(Catalog({"slack": well}), [Failed("slack", "it is down", 12.0)]).servers["slack"]
    assert again.stale_since == 12.0


def test_a_server_that_never_answered_is_known_by_its_failure():
    record = merge(Catalog(), [Failed("slack", "no such command", 5.0)]).servers["slack"]
    assert record == ServerRecord("slack", error="no such command", stale_since=5.0)


def test_a_clock_set_back_does_not_make_an_answer_old():
    known = merge(Catalog(), [listed("slack", "a", at=2_000_000_000.0)])
    assert names(merge(known, [listed("slack", "b", at=1.0)])) == ["slack__b"]


def test_a_tool_listed_twice_is_the_first_with_a_warning():
    record = merge(Catalog(), [listed("slack", tool("a", v=1), "b", tool("a", v=2), tool("a", v=3))]).servers[
        "slack"
    ]
    assert [entry.raw for entry in record.entries] == [tool("a", v=1), tool("b")]
    assert record.warnings == ("'slack' lists 'a' more than once; the first is used.",)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b'{"name":""}',
        b'{"name":1}',
        b"junk",
        b"",
        b'{"name":"\xff"}',
        b'{"name":"d","a":' + b"[" * 5000,
    ],
)
def test_an_invalid_tool_is_left_out_not_the_list(raw):
    record = merge(Catalog(), [listed("slack", "a", raw, "b")]).servers["slack"]
    assert [entry.tool for entry in record.entries] == ["a", "b"]
    assert len(record.warnings) == 1
    assert record.warnings[0].endswith("; the tool is left out.")


def test_the_bytes_of_a_tool_are_kept_without_the_space_around_them():
    raw = b'{ "name" : "a", "x": 1.0, "x": 1E2, "\\u00e9": "\\/" }'
    assert merge(Catalog(), [listed("slack", b"\n\t" + raw + b"\r\n ")]).entries[0].raw == raw


def offer(**fields: object) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("field", "word", "key"),
    [
        ("prompts", "prompt", "name"),
        ("resources", "resource", "uri"),
        ("templates", "resource template", "uriTemplate"),
    ],
)
def test_what_else_a_server_offers_is_kept_as_it_came_by_name(field, word, key):
    b, a = b'{ "%b" : "b", "x":1.0 }' % key.encode(), b'{"x":[1E2],"%b":"a"}' % key.encode()
    wrong = [b"", b"junk", b"[]", b"{}", offer(**{key: 7}), offer(**{key: ""}), b'{"x":' + b"[" * 5000]
    update = Listed("docs", (), 1.0, **{field: (b"\n " + b + b"\r\n", *wrong, a, offer(**{key: "b"}))})
    record = merge(Catalog(), [update]).servers["docs"]
    assert getattr(record, field) == (a, b)
    assert record.warnings[-1] == f"'docs' lists the {word} 'b' more than once; the first is used."
    for warning in record.warnings[:-1]:
        assert warning.startswith(f"a {word} of 'docs' ")
        assert warning.endswith("; it is left out.")
    assert f"a {word} of 'docs' has no {key}; it is left out." in record.warnings


def test_what_a_server_says_of_itself_is_kept_as_it_came():
    update = Listed(
        "docs", (), 1.0, capabilities=b' {"prompts":{ }, "tools":null}', info=b'{"name" : "D"}', ttl=60
    )
    record = merge(Catalog(), [update]).servers["docs"]
    assert (record.capabilities, record.info) == (b'{"prompts":{ }, "tools":null}', b'{"name" : "D"}')
    assert (record.ttl, record.warnings) == (60, ())
    assert [record.declares(each) for each in ("prompts", "tools", "resources")] == [True, False, False]


@pytest.mark.parametrize("raw", [b"7", b"[]", b"{", b'{"a":"\xff"}', b'{"a":' + b"[" * 5000])
def test_what_is_not_an_object_says_nothing_of_a_server(raw):
    record = merge(Catalog(), [Listed("docs", (), 1.0, capabilities=raw, info=raw)]).servers["docs"]
    assert (record.capabilities, record.info) == (b"{}", b"")
    assert record.warnings == (
        "the field 'capabilities' of 'docs' is not a JSON object; it is left out.",
        "the field 'serverInfo' of 'docs' is not a JSON object; it is left out.",
    )


def test_a_server_that_fails_or_is_configured_anew_keeps_what_else_it_offers():
    update = Listed("docs", (), 1.0, None, "old", prompts=(offer(name="p"),), capabilities=b'{"prompts":{}}')
    known = merge(Catalog(), [update])
    for later in (merge(known, [Failed("docs", "it is down", 2.0)]), retain(known, {"docs": "new"})):
        assert later.servers["docs"].stale
        assert later.servers["docs"].prompts == update.prompts
        assert later.servers["docs"].declares("prompts")


def test_every_list_has_a_version_of_its_own():
    def versions(**fields: object) -> tuple[str, str, str]:
        catalog = merge(Catalog(), [Listed("a", (tool("x"),), 1.0, **fields)])
        return catalog.version, catalog.prompts_version, catalog.resources_version

    base = versions()
    assert base == versions(capabilities=b'{"a":1}', info=b'{"b":1}', ttl=5.0)
    prompts = [versions(prompts=(offer(name=name),)) for name in "pq"]
    assert len({base[1], *(version for _, version, _ in prompts)}) == 3
    assert {(first, last) for first, _, last in prompts} == {(base[0], base[2])}
    resources = [
        versions(resources=(offer(uri="p"),)),
        versions(templates=(offer(uriTemplate="p"),)),
        versions(resources=(offer(uri="p", uriTemplate="p"),)),
        versions(templates=(offer(uri="p", uriTemplate="p"),)),
    ]
    assert len({base[2], *(version for _, _, version in resources)}) == 5
    assert {(first, second) for first, second, _ in resources} == {base[:2]}


def test_retain_drops_servers_gone_from_the_config():
    catalog = merge(Catalog(), [listed("a", "x", fingerprint="f"), listed("b", "y", fingerprint="g")])
    kept = retain(catalog, {"b": "g", "new": "h"})
    assert kept.servers == {"b": catalog.servers["b"]}
    assert kept.servers["b"] is catalog.servers["b"]


def test_retain_keeps_the_tools_of_a_changed_server_but_trusts_nothing_else():
    catalog = merge(Catalog(), [listed("a", "x", at=3.0, fingerprint="old", protocol="2025-11-25")])
    record = retain(catalog, {"a": "new"}).servers["a"]
    assert [entry.name for entry in record.entries] == ["a__x"]
    assert (record.protocol, record.fingerprint, record.stale, record.stale_since) == (None, "new", True, 3.0)
    assert record.error == "its configuration changed after its tools were listed"
    failing = merge(catalog, [Failed("a", "it is down", 7.0)])
    assert retain(failing, {"a": "new"}).servers["a"].stale_since == 7.0


def test_retain_does_not_doubt_what_has_no_fingerprint():
    catalog = merge(Catalog(), [listed("a", "x")])
    assert retain(catalog, {"a": "new"}) == catalog


@given(CATALOGS, st.dictionaries(SERVERS, st.sampled_from(["", "f1", "f2"])))
def test_retaining_twice_is_retaining_once(catalog, servers):
    once = retain(catalog, servers)
    assert retain(once, servers) == once
    assert once.servers.keys() == catalog.servers.keys() & servers.keys()


TWO = merge(Catalog(), [listed("a", "get_x", "set_x", "Get_y"), listed("b", "get_z")])


def configured(name: str = "a", **fields: object) -> dict[str, ServerConfig]:
    return {name: ServerConfig(name, "stdio", "x", **fields)}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({}, ["a__Get_y", "a__get_x", "a__set_x"]),
        ({"tools_allow": ("get_*",)}, ["a__get_x"]),
        ({"tools_allow": ("*",), "tools_deny": ("*_x",)}, ["a__Get_y"]),
        ({"tools_deny": ("get_x",)}, ["a__Get_y", "a__set_x"]),
        ({"tools_allow": ("[Gg]et_?",)}, ["a__Get_y", "a__get_x"]),
        ({"tools_allow": ("a__get_x",)}, []),
        ({"tools_allow": ()}, []),
        ({"disabled": True}, []),
    ],
)
def test_only_what_the_config_allows_can_be_seen(fields, seen):
    visible = allowed(TWO, configured(**fields))
    assert names(visible) == seen
    assert [name for name in map(visible.get, names(TWO)) if name] == list(visible.entries)


@pytest.mark.parametrize(
    ("fields", "seen"), [({}, True), ({"tools_allow": ()}, True), ({"disabled": True}, False)]
)
def test_what_else_a_server_offers_is_seen_when_the_server_is(fields, seen):
    update = Listed("a", (), 1.0, prompts=(offer(name="p"),), resources=(offer(uri="r"),))
    known = merge(Catalog(), [update])
    visible = allowed(known, configured(**fields))
    assert ([record.prompts for record in visible.servers.values()] == [update.prompts]) == seen
    assert (visible.prompts_version == known.prompts_version) == seen
    assert (visible.resources_version == known.resources_version) == seen


def test_a_server_that_keeps_all_its_tools_keeps_its_record():
    assert allowed(TWO, configured()).servers["a"] is TWO.servers["a"]
    assert allowed(TWO, {}) == Catalog()


def test_the_version_says_what_a_client_can_see_and_nothing_else():
    same = merge(
        TWO, [Failed("a", "it is down", 9.0), listed("b", "get_z", at=9.0, protocol="x", fingerprint="f")]
    )
    assert (
        same.version
        == TWO.version
        == merge(Catalog(), [listed("b", "get_z"), listed("a", "Get_y", "set_x", "get_x")]).version
    )
    others = [
        Catalog(),
        allowed(TWO, configured()),
        merge(TWO, [listed("b", tool("get_z", title="Z"))]),
        merge(TWO, [listed("b", b'{"name": "get_z" }')]),
        merge(Catalog(), [listed("c", "get_x", "set_x", "Get_y"), listed("b", "get_z")]),
    ]
    assert len({TWO.version, *(other.version for other in others)}) == 1 + len(others)


def test_the_version_is_the_same_in_every_run():
    # A client and the query cache compare it across restarts.
    assert TWO.version == "c9cd02a2f4147531"


def test_a_tool_is_found_by_its_whole_name():
    catalog = merge(Catalog(), [listed("a", "b__c", "_d", "with space", "送信")])
    for name in names(catalog):
        assert catalog.get(name).name == name
    assert catalog.get("a__b") is None
    assert catalog.get("") is None
    assert len(catalog) == 4
    assert repr(catalog) == f"Catalog(1 servers, 4 tools, version {catalog.version})"


def test_catalogs_are_equal_by_their_records():
    assert Catalog() == Catalog({})
    assert Catalog() != TWO
    assert Catalog() != "catalog"
    assert list(merge(Catalog(), [listed("b", "x"), listed("a", "x")]).servers) == ["a", "b"]


def test_a_catalog_cannot_be_changed():
    with pytest.raises(TypeError):
        TWO.servers["c"] = ServerRecord("c")


def test_every_pair_of_server_and_tool_has_its_own_name():
    made = merge(Catalog(), [listed(s, "x", "_x", "x__y", "__") for s in ("a", "a.b", "a_b")])
    assert len(made) == len(list(itertools.product(range(3), range(4))))


def test_a_tool_that_did_not_change_stays_the_same_object():
    """After a refresh, the index had one copy of every tool and the catalog another."""
    before = merge(Catalog(), [listed("slack", "a", tool("b", description="one"), "c")])
    same = merge(before, [listed("slack", "a", tool("b", description="one"), "c", at=2.0)])
    assert same.servers["slack"].entries is before.servers["slack"].entries
    assert same.servers["slack"].fetched_at == 2.0
    changed = merge(before, [listed("slack", "a", tool("b", description="two"), "d", at=3.0)])
    assert [entry.tool for entry in changed.entries] == ["a", "b", "d"]
    assert changed.get("slack__a") is before.get("slack__a")
    assert changed.get("slack__b").description == "two"
    assert changed.version == merge(Catalog(), [listed("slack", *(e.raw for e in changed.entries))]).version
