"""What a person is asked: everything, or nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.model.limits import ASKED_ARGUMENTS
from mcpzip.model.risk import WORST
from mcpzip.policy.question import action_of, question

ENTRY = Entry.parse("git", json.dumps({"name": "merge\u202e\n", "description": "nice"}).encode())


def message(arguments: bytes) -> str:
    params = question(ENTRY, WORST, arguments)
    assert params is not None
    read = json.loads(params)
    assert read["requestedSchema"] == {"type": "object", "properties": {}}
    found = read["message"]
    assert isinstance(found, str)
    return found


def test_the_server_the_tool_its_risk_and_the_arguments_are_shown() -> None:
    text = message(b'{"repo":"shop","n":1.0,"n":2}')
    assert "tool merge\\u202e  of the server git" in text
    assert "writes, may destroy, reaches out" in text
    assert '{\n  "repo": "shop",\n  "n": 1.0,\n  "n": 2\n}' in text


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\U000e0041", "\u2028", "\x7f", "\ufe00"])
def test_characters_that_hide_or_reorder_are_shown(hidden: str) -> None:
    text = message(json.dumps({"to": f"a{hidden}b"}, ensure_ascii=False).encode())
    assert hidden not in text
    assert "\\u" in text or "\\x" in text


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5))
def test_what_is_shown_is_what_runs(value: dict[str, str]) -> None:
    text = message(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    assert json.loads(text[text.index(" {", text.index("\n\n")) :]) == value


def test_what_is_too_long_to_be_read_is_not_shown() -> None:
    fits = b'{"a":"' + b"x" * (ASKED_ARGUMENTS - 20) + b'"}'
    assert question(ENTRY, WORST, fits) is not None
    assert question(ENTRY, WORST, b'{"a":"' + b"x" * ASKED_ARGUMENTS + b'"}') is None
    escaped = json.dumps({"a": "\u202e" * (ASKED_ARGUMENTS // 5)}, ensure_ascii=False).encode()
    assert question(ENTRY, WORST, escaped) is None


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (b'{"action":"accept","content":{}}', "accept"),
        (b'{"action":"accept"}', "accept"),
        (b'{"action":"decline"}', "decline"),
        (b'{"action":"cancel"}', "cancel"),
        (b'{"action":"ACCEPT"}', ""),
        (b'{"action":true}', ""),
        (b"{}", ""),
        (b"[]", ""),
        (b"", ""),
    ],
)
def test_only_a_yes_is_a_yes(answer: bytes, action: str) -> None:
    assert action_of(answer) == action


def test_a_person_is_told_which_arguments_are_results_of_tools() -> None:
    asked = question(ENTRY, WORST, b'{"body":"x"}', about=("r1-x is of \u202ea__b.",))
    assert asked is not None
    assert json.loads(asked)["message"].endswith("In it, r1-x is of \\u202ea__b.")
