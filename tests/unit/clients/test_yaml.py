"""Entries of YAML files, edited in place."""

import re
from typing import Any

import pytest
import yaml as library
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.clients import yaml

PATH = ("extensions",)
NEW = {"enabled": True, "cmd": "/opt/mcpzip", "args": ["serve"], "envs": {}}

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\u2028\u2029\x85"), max_size=6
)
SCALARS = st.one_of(TEXTS, st.integers(-99, 99), st.booleans(), st.none(), st.just("on\ntwo lines\n"))
NAMES = st.one_of(st.text("abc019", min_size=1, max_size=3), TEXTS)
ENTRIES = st.dictionaries(
    NAMES,
    st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(TEXTS, SCALARS, max_size=2)),
    max_size=4,
)
FILES = st.dictionaries(NAMES, ENTRIES, max_size=4)


@given(
    FILES,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "# end\n", "other: 1 # one\n", "other:\n  - 1\n"]),
    st.data(),
)
def test_there_and_back(
    entries: dict[str, Any], windows: bool, indented: bool, after: str, data: st.DataObject
) -> None:
    dumper = library.SafeDumper
    body = library.dump(
        {"extensions": entries}, Dumper=dumper, allow_unicode=True, indent=4 if indented else 2
    )
    text = f"# mine\nfirst: on\n{body}{after}"
    text = text.replace("\n", "\r\n") if windows else text
    was = yaml.parsed(text)
    assume(was.get("extensions") == entries)  # a key of YAML 1.1 is another in 1.2
    remove = data.draw(st.lists(st.sampled_from(sorted(entries)), unique=True) if entries else st.just([]))
    assume("new" not in entries)
    try:
        now = yaml.edited(text, PATH, remove, {"new": NEW})
    except yaml.YamlEditError:  # refused, never wrong
        assert not all(
            re.fullmatch("[a-z0-9]+", name) for entry in (entries, *entries.values()) for name in entry
        )
        return
    assert yaml.parsed(now) == {
        **was,
        "extensions": {**{k: v for k, v in entries.items() if k not in remove}, "new": NEW},
    }
    assert now.startswith(text[: text.index("extensions")])
    assert now.endswith(text[len(text) - len(after) :])
    kept = {name: yaml.entry_text(text, PATH, name) for name in remove}
    back = yaml.edited(now, PATH, ["new"], kept)
    assert yaml.parsed(back) == was


def test_each_entry_keeps_its_comments_and_its_style() -> None:
    text = (
        "extensions:\n    a: {cmd: x}   # one line\n    # about b\n    b:\n        cmd: |\n            two\n"
        "            lines\n"
    )
    now = yaml.edited(text, PATH, ["b"], {"new": {"cmd": "n"}})
    assert now == "extensions:\n    a: {cmd: x}   # one line\n    # about b\n    new:\n      cmd: n\n"
    assert yaml.edited(now, PATH, ["new"], {"b": yaml.entry_text(text, PATH, "b")}) == text


@pytest.mark.parametrize(
    "text", ["", "a: 1", "a: 1\nextensions: {}\n", "extensions:\nb: 2\n", "extensions: # hi\n"]
)
def test_where_there_is_no_entry_yet(text: str) -> None:
    now = yaml.edited(text, PATH, [], {"new": {"cmd": "n"}})
    assert yaml.parsed(now) == {**yaml.parsed(text), "extensions": {"new": {"cmd": "n"}}}
    assert yaml.parsed(yaml.edited(now, PATH, ["new"], {}))["extensions"] == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "it is not YAML: .* in line 1"),
        ("- 1\n", "it is not a mapping"),
        ("a: &x {b: 1}\nc: *x\n", "it has aliases"),
        ("a: 1\na: 2\n", "a key stands twice"),
        ("--- {a: 1}\n--- {b: 2}\n", "it is not YAML"),
        ("a: !!python/object:os.system x\n", "it can't be read"),
        ("[" * 1100, "it is not YAML"),
        ("extensions: {a: {cmd: x}}\n", "written in braces"),
        ("extensions: 5\n", "not a mapping"),
        ("x" * (yaml.MAX_LENGTH + 1), "more than 1,000,000 characters"),
    ],
)
def test_what_cant_be_edited_says_why(text: str, reason: str) -> None:
    with pytest.raises(yaml.YamlEditError, match=reason):
        yaml.edited(text, PATH, [], {"new": {"cmd": "n"}})


def test_plain_scalars_are_those_of_yaml_1_2() -> None:
    text = "a: on\nb: 12:30\nc: true\nd: 2026-11-24\ne: 010\nf: 1e3\ng:\nh: ~\n"
    assert yaml.parsed(text) == {
        "a": "on", "b": "12:30", "c": True, "d": "2026-11-24", "e": 10, "f": 1000.0, "g": None, "h": None,
    }  # fmt: skip
