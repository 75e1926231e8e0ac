"""What one server may have of the catalog, and of the snapshot: too large an item costs itself, too large a
server costs itself. (One server once made the snapshot too large to be read: every tool of everybody was
forgotten.)
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, merge, snapshot
from mcpzip.catalog.list_checks import Problems
from mcpzip.model import limits

CONFIG = "/home/me/config.json"


def catalog_of(**offered):
    (record,) = merge(Catalog(), [Listed("evil", offered.pop("tools", ()), 1.0, **offered)]).servers.values()
    return record


def tool(name, **more):
    return json.dumps({"name": name, **more}).encode()


def test_a_tool_larger_than_any_may_be_is_left_out():
    big = tool("big", description="x" * limits.ITEM)
    record = catalog_of(tools=(big, tool("fits")))
    assert [entry.tool for entry in record.entries] == ["fits"]
    assert record.warnings == ("a tool of 'evil' is larger than 1,048,576 bytes; the tool is left out.",)


@pytest.mark.parametrize("over", [0, 1, 1000 * limits.NAME])
def test_a_tool_with_a_long_name_is_left_out(over):
    record = catalog_of(tools=(tool("n" * (limits.NAME + over)), tool("fits")))
    assert len(record.entries) == (1 if over else 2)
    assert len(record.warnings) == (1 if over else 0)
    assert all(len(warning) < 300 for warning in record.warnings)


@pytest.mark.parametrize(
    ("kind", "key", "longest"),
    [
        ("prompts", "name", limits.NAME),
        ("resources", "uri", limits.URI),
        ("templates", "uriTemplate", limits.URI),
    ],
)
def test_an_offer_with_a_long_key_or_too_large_is_left_out(kind, key, longest):
    offers = (
        json.dumps({key: "k" * longest}).encode(),
        json.dumps({key: "k" * longest + "k"}).encode(),
        json.dumps({key: "big", "title": "x" * limits.ITEM}).encode(),
    )
    record = catalog_of(**{kind: offers})
    assert getattr(record, kind) == offers[:1]
    assert len(record.warnings) == 2
    assert all(len(warning) < 300 for warning in record.warnings)


def test_a_tool_or_an_offer_of_very_many_members_is_left_out():
    """Three of 350,000 members held the event loop for 2.9 s whenever they were listed."""
    many = {f"x{number}": 0 for number in range(limits.MEMBERS)}
    tools = (tool("many", **many), tool("fits"))
    prompts = (json.dumps({"name": "many", **many}).encode(), b'{"name":"fits"}')
    record = catalog_of(tools=tools, prompts=prompts)
    assert [entry.tool for entry in record.entries] == ["fits"]
    assert record.prompts == prompts[1:]
    assert record.warnings == (
        "a tool of 'evil' has more than 1,024 members; the tool is left out.",
        "a prompt of 'evil' has more than 1,024 members; it is left out.",
    )


def test_fifty_thousand_bad_tools_are_a_few_warnings():
    tools = [b'{"x":%d}' % number for number in range(10)] + [
        tool("n" * (limits.NAME + 1 + number)) for number in range(50_000 // 100)
    ]
    record = catalog_of(tools=tuple(tools))
    assert len(record.warnings) == limits.WARNINGS + 1
    assert record.warnings[-1] == f"{500 - limits.WARNINGS + 1:,} more things like these are wrong."


def test_the_same_again_is_not_counted():
    amiss = Problems()
    for _ in range(100):
        amiss.append("a")
    assert amiss.sentences() == ("a",)


def test_a_name_that_is_listed_twice_is_not_repeated_whole():
    record = catalog_of(tools=(tool("n" * limits.NAME),) * 2)
    assert len(record.warnings[0]) < limits.ECHO + 100


def test_what_a_server_says_of_itself_is_bounded():
    big = b'{"x":"%b"}' % (b"x" * limits.SELF)
    record = catalog_of(
        instructions="i" * (limits.INSTRUCTIONS + 1), title="t" * 99_999, capabilities=big, info=big
    )
    assert len(record.instructions) == limits.INSTRUCTIONS
    assert len(record.title) == limits.NAME
    assert (record.capabilities, record.info) == (b"{}", b"")
    assert len(record.warnings) == 3


def test_the_reason_of_a_failure_is_bounded():
    (record,) = merge(Catalog(), [Failed("evil", "x" * 1_000_000, 1.0)]).servers.values()
    assert record.error is not None
    assert len(record.error) == limits.REASON


# --- the snapshot -------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache" / "tools.json")


def test_one_oversized_server_loses_only_itself(path, monkeypatch):
    monkeypatch.setattr(limits, "SNAPSHOT_SERVER", 10_000)
    evil = [tool(f"t{number}", description="x" * 1_000) for number in range(20)]
    catalog = merge(
        Catalog(),
        [Listed("evil", tuple(evil), 1.0, "2025-11-25", "abcd"), Listed("good", (tool("a"),), 1.0)],
    )
    (warning,) = snapshot.save(path, CONFIG, catalog)
    assert "the lists of 'evil' are not stored" in warning
    loaded, warnings = snapshot.load(path, CONFIG)
    assert warnings == ()
    assert loaded.servers["good"] == catalog.servers["good"]
    lost = loaded.servers["evil"]
    assert (lost.entries, lost.fetched_at, lost.protocol) == ((), None, "2025-11-25")
    assert lost.error is not None
    assert "too many to be stored" in lost.error


SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3_000), max_size=6)


@given(sizes=SIZES, share=st.integers(300, 3_000), whole=st.integers(4_000, 12_000))
def test_whatever_is_saved_can_be_loaded_and_the_small_are_never_lost(tmp_path_factory, sizes, share, whole):
    path = str(tmp_path_factory.getbasetemp() / "limits" / "tools.json")
    updates = [Listed(name, (tool("t", x="y" * size),), 1.0) for name, size in sizes.items()]
    catalog = merge(Catalog(), updates)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "SNAPSHOT_SERVER", share)
        patched.setattr(limits, "SNAPSHOT", whole)
        warnings = snapshot.save(path, CONFIG, catalog)
        loaded, said = snapshot.load(path, CONFIG)
    assert said == ()
    assert set(loaded.servers) == set(sizes)
    lost = {name for name, record in loaded.servers.items() if record.fetched_at is None}
    kept = set(sizes) - lost
    assert all(loaded.servers[name] == catalog.servers[name] for name in kept)
    assert len(warnings) == len(lost)
    assert all(sizes[name] <= share for name in kept)
    # Only a larger one than each that is kept was lost to the file's own limit.
    assert all(sizes[one] >= sizes[other] for one in lost for other in kept)


def test_a_name_too_long_that_an_earlier_version_kept_is_left_out(path, monkeypatch):
    catalog = merge(Catalog(), [Listed("evil", (tool("n" * 100), tool("a")), 1.0)])
    snapshot.save(path, CONFIG, catalog)
    monkeypatch.setattr(limits, "NAME", 50)
    loaded, warnings = snapshot.load(path, CONFIG)
    assert [entry.tool for entry in loaded.entries] == ["a"]
    assert len(warnings) == 1
