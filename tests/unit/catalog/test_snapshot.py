"""The snapshot: every byte comes back, and nothing in the file can stop a start."""

import errno
import json
import os
import stat
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, ServerRecord, merge, retain, snapshot

CONFIG = "/home/me/config.json"

RAW = (
    b'{ "name":"a", "x" : [1.0, 1E2, -0, 123456789012345678901234567890], "x":2, "\\u00e9":"\xc3\xa9\\/" }',
    b'{"name":"b","inputSchema":{"type":"object"},"_meta":{"k":null}}',
)
FULL = merge(
    Catalog(),
    [
        Listed("slack", RAW, 1.5, "2025-11-25", "abcd1234", "Slack", "Use it well.\nSecond line"),
        Listed("twice", (RAW[0], RAW[0]), 2.0),
        Listed(
            "docs",
            (),
            2.5,
            prompts=(b'{ "name":"p" , "x":1E2}', b'{"name":"q"}'),
            resources=(b'{"uri" : "file:///a", "\\u00e9":"\xc3\xa9\\/" }',),
            templates=(b'{"uriTemplate":"file:///{+path}", "x":1.0}',),
            capabilities=b'{"prompts":{ }, "resources":{"subscribe":true}}',
            info=b'{"name":"Docs", "version":"1"}',
            ttl=60.5,
        ),
        Listed("empty", (), 3.0),
        Failed("empty", "it is down", 4.25),
        Failed("never", "no such command: \udcff", 5.0),
    ],
)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache" / "tools.json")


def write(path, data):
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def load_bytes(tmp, data):
    target = str(tmp / "tools.json")
    with open(target, "wb") as file:
        file.write(data)
    return snapshot.load(target, CONFIG)


def test_a_catalog_comes_back_byte_for_byte(path):
    assert snapshot.save(path, CONFIG, FULL) == ()
    loaded, warnings = snapshot.load(path, CONFIG)
    assert warnings == ()
    assert [entry.raw for entry in loaded.servers["slack"].entries] == list(RAW)
    never = loaded.servers["never"]
    assert never.error == "no such command: \\udcff"  # a byte that is no text can't be stored as one
    assert {**loaded.servers, "never": FULL.servers["never"]} == FULL.servers
    assert loaded.version == FULL.version


def test_a_failure_in_the_file_is_of_another_process(path):
    changed = retain(FULL, {"slack": "other", "empty": "", "never": "", "docs": ""})
    snapshot.save(path, CONFIG, changed)
    loaded = snapshot.load(path, CONFIG)[0].servers
    failing = {name: (record.stale, record.failing) for name, record in loaded.items()}
    # A change of the config is about the list: every process has to know it.
    assert failing == {
        "docs": (False, False),
        "empty": (True, False),
        "never": (True, False),
        "slack": (True, True),
    }
    again = merge(Catalog(loaded), [Failed("empty", "it is down", 9.0)])
    assert again.servers["empty"].failing


def test_it_is_the_owners_only_and_says_what_it_is(path):
    snapshot.save(path, CONFIG, FULL)
    assert sorted(os.listdir(os.path.dirname(path))) == [".gitignore", "tools.bin", "tools.json"]
    if os.name != "nt":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, "rb") as file:
        assert file.read().startswith(
            b'{"format":"mcpzip-snapshot","version":1,"config":"/home/me/config.json",'
        )


TOOLS = st.builds(
    lambda name, extra, space: (
        space + json.dumps({"name": name, **extra}, ensure_ascii=False) + space
    ).encode(),
    st.text(min_size=1, max_size=6),
    st.dictionaries(
        st.sampled_from(["title", "description", "inputSchema", "x"]),
        st.none()
        | st.integers()
        | st.text(max_size=6)
        | st.lists(st.floats(allow_nan=False, allow_infinity=False)),
    ),
    st.sampled_from(["", " ", "\r\n"]),
)
RECORDS = st.builds(
    Listed,
    st.sampled_from(["a", "b.c", "d-e"]),
    st.lists(TOOLS, max_size=4).map(tuple),
    st.floats(0, 2e9),
    st.none() | st.sampled_from(["2024-11-05", "2026-07-28"]),
    st.sampled_from(["", "0123abcd"]),
    st.text(max_size=5),
    st.text(max_size=5),
    st.lists(TOOLS, max_size=2).map(tuple),
    st.lists(st.sampled_from([b'{"uri":"a:b", "x":1.0}', b'{"uri":"\xc3\xa9"}']), max_size=2).map(tuple),
    st.lists(st.sampled_from([b'{"uriTemplate":"a:{b}"}', b"{}"]), max_size=2).map(tuple),
    st.sampled_from([b"{}", b"{ }", b'{"prompts":{}}']),
    st.sampled_from([b"", b'{"name":"n"}']),
    st.none() | st.floats(0, 1e6),
) | st.builds(Failed, st.sampled_from(["a", "f"]), st.text(max_size=5), st.floats(0, 2e9))


@given(updates=st.lists(RECORDS, max_size=5))
def test_every_catalog_comes_back_as_it_was(tmp_path_factory, updates):
    catalog = merge(Catalog(), updates)
    path = str(tmp_path_factory.getbasetemp() / "round.json")
    assert snapshot.save(path, CONFIG, catalog) == ()
    assert snapshot.load(path, CONFIG) == (catalog, ())


def test_a_missing_file_is_an_empty_catalog(path):
    assert snapshot.load(path, CONFIG) == (Catalog(), ())


def head(**fields):
    return {"format": "mcpzip-snapshot", "version": 1, "config": CONFIG, "servers": {}, **fields}


# What stands in the file, and what is said of it.
UNUSABLE = [
    (b"", "is damaged or isn't a snapshot"),
    (b"\0" * 4096, "is damaged or isn't a snapshot"),
    (b"not json", "is damaged or isn't a snapshot"),
    (b'{"format":"mcpzip-snapshot","version":1,"con', "is damaged or isn't a snapshot"),
    (b'{"format":"mcpzip-snapshot","version":1,"config":"\xff"}', "is damaged or isn't a snapshot"),
    (b"[" * 100_000, "is damaged or isn't a snapshot"),
    (b'{"a":' * 100_000, "is damaged or isn't a snapshot"),
    (json.dumps(head()).encode() + b"{}", "is damaged or isn't a snapshot"),
    ({}, "is damaged or isn't a snapshot"),
    ({"tools": []}, "is damaged or isn't a snapshot"),
    ("a string", "is damaged or isn't a snapshot"),
    ([1, 2], "is damaged or isn't a snapshot"),
    ([{"name": "a"}], "is damaged or isn't a snapshot"),
    (head(servers=[]), "is damaged or isn't a snapshot"),
    (head(servers={"a": {}}), "is damaged or isn't a snapshot"),
    (head(servers={"a": {"tools": 7}}), "is damaged or isn't a snapshot"),
    (head(servers={"a": {"tools": [], "fetched_at": "now"}}), "is damaged or isn't a snapshot"),
    (head(version="1"), "is damaged or isn't a snapshot"),
    (head(format="other"), "isn't a snapshot of mcpzip (its format is 'other')"),
    (head(version=2), "was written by a newer version of mcpzip (2; this one reads 1)"),
    (
        {"format": "mcpzip-snapshot", "version": 99, "all": "new"},
        "was written by a newer version of mcpzip (",
    ),
    (head(config="/home/you/config.json"), "belongs to another config (/home/you/config.json)"),
]


@pytest.mark.parametrize(("content", "said"), UNUSABLE)
def test_a_file_of_no_use_is_an_empty_catalog_and_one_sentence(path, content, said):
    write(path, content)
    catalog, warnings = snapshot.load(path, CONFIG)
    assert catalog == Catalog()
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{path} {said}")
    assert warnings[0].endswith("; it is rebuilt on the next refresh.")
    assert "\n" not in warnings[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "can't be read (Permission denied)"),
        (OSError(errno.EIO, "Input/output error"), "can't be read (Input/output error)"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_empty_catalog_and_one_sentence(monkeypatch, path, error, said):
    def refuse(*_):
        raise error

    monkeypatch.setattr(snapshot, "StateFile", refuse)
    assert snapshot.load(path, CONFIG) == (Catalog(), (f"{path} {said}; it is rebuilt on the next refresh.",))


def test_a_folder_in_its_place_stops_nothing(path):
    os.makedirs(path)
    catalog, warnings = snapshot.load(path, CONFIG)
    assert catalog == Catalog()
    assert warnings[0].startswith(f"{path} can't be read (")
    kept = snapshot.save(path, CONFIG, FULL)
    assert len(kept) == 1
    assert kept[0].startswith(f"{path} can't be written (")
    assert kept[0].endswith("or every start begins without tools.")


@given(cut=st.integers(0, 2000))
def test_any_truncation_is_survived(tmp_path_factory, cut):
    tmp = tmp_path_factory.getbasetemp()
    snapshot.save(str(tmp / "whole.json"), CONFIG, FULL)
    whole = (tmp / "whole.json").read_bytes()
    catalog, warnings = load_bytes(tmp, whole[: cut % len(whole)])
    assert catalog == Catalog()
    assert len(warnings) == 1


@given(at=st.integers(0, 2000), byte=st.integers(0, 255))
def test_any_flipped_byte_is_survived(tmp_path_factory, at, byte):
    tmp = tmp_path_factory.getbasetemp()
    snapshot.save(str(tmp / "whole.json"), CONFIG, FULL)
    whole = bytearray((tmp / "whole.json").read_bytes())
    whole[at % len(whole)] = byte
    catalog, warnings = load_bytes(tmp, bytes(whole))
    assert catalog.servers or warnings


@given(data=st.binary(max_size=80) | st.text('{}[]",:0eEtrufalsn\\ mcpzip', max_size=40).map(str.encode))
def test_any_bytes_are_survived(tmp_path_factory, data):
    catalog, warnings = load_bytes(tmp_path_factory.getbasetemp(), data)
    assert catalog == Catalog()
    assert len(warnings) == (data.strip() != b"[]")


def test_a_tool_that_is_none_is_left_out_and_the_rest_kept(path):
    write(path, head(servers={"a": {"tools": [{"name": "x"}, {"nome": "y"}, 7, {"name": "z"}]}}))
    catalog, warnings = snapshot.load(path, CONFIG)
    assert [entry.tool for entry in catalog.entries] == ["x", "z"]
    assert warnings == (
        f"{path}: a tool of 'a' has no name; it is left out until the next refresh.",
        f"{path}: a tool of 'a' is not a JSON object; it is left out until the next refresh.",
    )


def test_a_file_of_before_there_were_prompts_is_read(path):
    write(path, head(servers={"a": {"tools": [{"name": "x"}], "fetched_at": 1.0}}))
    catalog, warnings = snapshot.load(path, CONFIG)
    record = catalog.servers["a"]
    assert (record.prompts, record.resources, record.templates) == ((), (), ())
    assert (record.capabilities, record.info, record.ttl, warnings) == (b"{}", b"", None, ())


def test_a_prompt_that_is_none_is_left_out_and_the_rest_kept(path):
    said = {"tools": [], "prompts": [{"name": "p"}, 7], "resources": [{"url": "r"}], "capabilities": []}
    write(path, head(servers={"a": said}))
    catalog, warnings = snapshot.load(path, CONFIG)
    assert catalog.servers["a"] == ServerRecord("a", prompts=(b'{"name": "p"}',))
    assert warnings == (
        f"{path}: a prompt of 'a' is not a JSON object; it is left out.",
        f"{path}: a resource of 'a' has no uri; it is left out.",
        f"{path}: the field 'capabilities' of 'a' is not a JSON object; it is left out.",
    )


def test_a_server_that_cannot_be_named_is_left_out_and_the_rest_kept(path):
    write(path, head(servers={"a__b": {"tools": []}, "c": {"tools": []}}))
    catalog, warnings = snapshot.load(path, CONFIG)
    assert catalog.servers == {"c": ServerRecord("c")}
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{path}: the server name 'a__b' contains '__'")


def test_keys_a_later_minor_version_may_add_are_passed_over(path):
    write(path, head(servers={"a": {"tools": [{"name": "x"}], "new": 1}}, new=2))
    catalog, warnings = snapshot.load(path, CONFIG)
    assert [entry.name for entry in catalog.entries] == ["a__x"]
    assert warnings == ()


def test_a_later_versions_file_is_kept_aside_not_overwritten(path):
    later = json.dumps({"format": "mcpzip-snapshot", "version": 2, "precious": True}).encode()
    write(path, later)
    assert snapshot.save(path, CONFIG, FULL) == (
        f"{path} was written by a newer version of mcpzip; it is kept as {path}.bak.",
    )
    with open(f"{path}.bak", "rb") as file:
        assert file.read() == later
    assert snapshot.load(path, CONFIG)[0].version == FULL.version
    assert snapshot.save(path, CONFIG, FULL) == ()


def test_the_originals_snapshot_is_read(path):
    # The original kept only the description and the schema; what it dropped comes with the next refresh.
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [
        {
            "name": f"slack__{name}",
            "server_name": "slack",
            "original_name": name,
            "description": description,
            "input_schema": schema,
            "compact_params": "text:string",
        }
        for name, description in (("send", "Send it"), ("a__b", None))
    ]
    write(
        path,
        [
            *tools,
            {"server_name": "bad__name", "original_name": "x"},
            {"server_name": "t", "original_name": "y"},
        ],
    )
    catalog, warnings = snapshot.load(path, CONFIG)
    assert [entry.name for entry in catalog.entries] == ["slack__a__b", "slack__send", "t__y"]
    send = catalog.get("slack__send")
    assert (send.description, send.input_schema()) == ("Send it", schema)
    assert send.definition() == {"name": "send", "inputSchema": schema, "description": "Send it"}
    assert catalog.servers["slack"].fetched_at is None
    assert len(warnings) == 1
    assert "'bad__name' contains '__'" in warnings[0]
    assert retain(catalog, {"slack": "any"}).servers["slack"] is catalog.servers["slack"]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), PermissionError(errno.EACCES, "Permission denied")],
)
def test_a_disk_that_takes_nothing_is_a_warning_and_the_old_file_stays(monkeypatch, path, error):
    snapshot.save(path, CONFIG, FULL)

    def refuse(*_):
        raise error

    monkeypatch.setattr(snapshot, "write_state", refuse)
    warnings = snapshot.save(path, CONFIG, Catalog())
    assert warnings == (
        f"{path} can't be written ({error.strerror}); make room or set its rights, "
        "or every start begins without tools.",
    )
    assert snapshot.load(path, CONFIG)[0].version == FULL.version


def test_a_config_path_that_is_no_text_has_its_own_snapshot(path):
    odd = "/home/\udcff/config.json"
    assert snapshot.save(path, odd, FULL) == ()
    assert snapshot.load(path, odd)[0].version == FULL.version
    assert snapshot.load(path, CONFIG)[0] == Catalog()


def test_one_tool_nested_nearly_too_deeply_does_not_lose_the_rest(path):
    limit = sys.getrecursionlimit()
    for depth in range(limit - 120, limit + 5, 5):
        deep = b'{"name":"deep","a":' + b"[" * depth + b"]" * depth + b"}"
        update = Listed("s", (b'{"name":"flat"}', deep), 1.0, prompts=(deep,), capabilities=deep, info=deep)
        catalog = merge(Catalog(), [update])
        assert snapshot.save(path, CONFIG, catalog) == ()
        assert snapshot.load(path, CONFIG) == (catalog, ())
