"""JSON with comments, edited in place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.clients.jsonc import JsoncError, edited, member_text, parse

SETTINGS = """\
// settings
{
    "theme": "dark", // at night
    "servers": {
        // the clock
        "time": {"command": "uvx"}, // local
        "git": {
            "command": "git" },
        /* old */ "off": {}
    },
    "list": [1, 2,],
}
"""


def test_what_is_removed_goes_with_its_comments() -> None:
    after = edited(SETTINGS, ["servers"], ["time", "off"], {})
    assert after == (
        '// settings\n{\n    "theme": "dark", // at night\n    "servers": {\n        "git": {\n'
        '            "command": "git" }\n    },\n    "list": [1, 2,],\n}\n'
    )


def test_what_is_added_stands_in_the_place_of_what_went() -> None:
    after = edited(SETTINGS, ["servers"], ["time"], {"mcpzip": {"args": ["serve"]}})
    assert '"servers": {\n        "mcpzip": {\n            "args": [\n                "serve"\n' in after
    assert after.index('"mcpzip"') < after.index('"git"')
    assert "the clock" not in after
    assert "/* old */" in after


def test_objects_on_the_way_are_made() -> None:
    assert parse(edited("", ["a", "b"], [], {"c": 1})).data == {"a": {"b": {"c": 1}}}
    assert edited('{\n\t"x": 1\n}\n', ["a"], [], {"c": 1}) == '{\n\t"x": 1,\n\t"a": {\n\t\t"c": 1\n\t}\n}\n'


def test_one_line_stays_one_line() -> None:
    assert edited('{"a": {"x": 1, "y": 2}}', ["a"], ["x"], {"z": [3]}) == '{"a": {"z": [3], "y": 2}}'
    assert edited('{"a": {"x": 1}}', ["a"], [], {"x": 2}) == '{"a": {"x": 2}}'


def test_a_line_ends_as_the_others_do() -> None:
    windows = SETTINGS.replace("\n", "\r\n")
    after = edited(windows, ["servers"], ["time"], {"mcpzip": {"args": []}})
    assert after.count("\n") == after.count("\r\n")


def test_the_text_of_a_member_is_taken_back_as_it_was() -> None:
    found = parse(SETTINGS).at(["servers", "git"])
    assert found is not None
    raw = member_text(SETTINGS, found)
    gone = edited(SETTINGS, ["servers"], ["git"], {})
    again = edited(gone, ["servers"], [], {"git": raw})
    assert '"git": {\n            "command": "git" }' in again


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": }', "line 1, column 7: a value belongs here"),
        ('{"a" 1}', 'line 1, column 6: ":" belongs here'),
        ('{\n"a": 1 "b": 2}', 'line 2, column 8: "," or "}" belongs here'),
        ("{} {}", "line 1, column 4: there is something after the end of the value"),
        ("{'a': 1}", "line 1, column 2: \"'a': 1}\" is not JSON"),
        ("[" * 200, "there are more than 100 levels"),
    ],
)
def test_what_is_no_json_is_named_with_its_place(text: str, where: str) -> None:
    with pytest.raises(JsoncError) as error:
        parse(text)
    assert where in str(error.value)


def test_two_comments_on_a_line_stay_apart() -> None:
    text = '{"servers": {"a": 1, /* the first */ "b": [2 /* the second */\n], "c": 3}}'
    assert edited(text, ["servers"], [], {}) == text
    assert (
        edited(text, ["servers"], ["a"], {})
        == '{"servers": { /* the first */ "b": [2 /* the second */\n], "c": 3}}'
    )
    assert parse(edited(text, ["servers"], ["b"], {"d": 4})).data == {"servers": {"a": 1, "c": 3, "d": 4}}


KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\u2028"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " /* c */ ", " // c\n"])


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """``value`` as JSONC, with spaces and comments drawn."""
    space = draw(SPACES)
    if isinstance(value, dict):
        parts = [f"{draw(SPACES)}{json.dumps(key)}{space}:{draw(texts(each))}" for key, each in value.items()]
        comma = draw(st.sampled_from(["", ","])) if parts else ""
        return "{" + ",".join(parts) + comma + draw(SPACES) + "}"
    if isinstance(value, list):
        return "[" + ",".join(draw(texts(each)) for each in value) + space + "]"
    return space + json.dumps(value) + draw(SPACES)


@given(
    st.data(),
    st.dictionaries(KEYS, VALUES, max_size=5),
    st.dictionaries(KEYS, st.none() | st.lists(VALUES, max_size=2), max_size=2),
)
def test_an_edit_means_what_it_says_and_no_more(
    data: st.DataObject, servers: dict[str, Any], add: dict[str, Any]
) -> None:
    other = data.draw(VALUES)
    text = data.draw(texts({"before": other, "servers": servers, "after": other}))
    assert parse(text).data == {"before": other, "servers": servers, "after": other}
    names = data.draw(st.lists(st.sampled_from(sorted(servers)), unique=True)) if servers else []
    after = edited(text, ["servers"], names, add)
    wanted = {key: value for key, value in servers.items() if key not in names} | add
    assert parse(after).data == {"before": other, "servers": wanted, "after": other}
    start, end = (
        (parse(text).at(["servers"]) or parse(text)).start,
        (parse(text).at(["servers"]) or parse(text)).end,
    )
    assert after.startswith(text[:start])
    assert after.endswith(text[end:])
