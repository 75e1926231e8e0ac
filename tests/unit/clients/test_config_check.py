"""The text of a config is checked: each mistake at its place, and no secret is kept of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.clients.config_check import Places, check
from mcpzip.config.syntax import member
from mcpzip.model.limits import CONFIG_PROBLEMS
from mcpzip.model.redaction import redact, registered, temporary_secrets

TEXT = """{
  "mcpServers": {
    "time": {"command": "uvx", "timeout": "soon"},
    "a.b": {"url": "https://x.example/mcp", "uls": 1},
    "web": {"url": "https://${NOT_SET}/mcp"}
  },
  "expose": 7
}
"""


def said(text: str) -> list[tuple[tuple[int, int], bool, str]]:
    """The place of each problem, whether it blocks, and the beginning of its text."""
    found = check(text.encode(), "config.json", {}).problems
    return [(one.place, one.blocks, one.text.partition(": ")[0]) for one in found]


def test_each_mistake_has_its_place() -> None:
    assert said(TEXT) == [
        ((7, 3), True, "expose"),
        ((3, 32), False, "mcpServers.time.timeout"),
        ((4, 45), False, "mcpServers.a.b.uls"),
        ((5, 13), False, "mcpServers.web.url"),
    ]
    found = check(TEXT.replace("7", '"meta"').encode(), "config.json", {})
    assert found.config is not None
    assert set(found.config.servers) == {"time", "a.b", "web"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (0, 0)),
        ("{", (1, 2)),
        ('{\n "a": 1,\n}', (2, 8)),
        ('{"a": 1, "a": 2}', (1, 10)),
        ("[]", (0, 0)),
        ('{"mcpServers": []}', (1, 2)),
    ],
)
def test_what_makes_the_whole_unusable_is_one_error(text: str, place: tuple[int, int]) -> None:
    found = check(text.encode(), "config.json", {})
    assert found.config is None
    assert [(one.place, one.blocks) for one in found.problems] == [(place, True)]


def test_a_text_that_is_not_utf8_has_a_line() -> None:
    (problem,) = check(b'{\n"a": "\xff"}', "config.json", {}).problems
    assert problem.place == (2, 0)


def test_they_are_bounded() -> None:
    text = json.dumps({"mcpServers": {}, **{f"key{number}": 1 for number in range(CONFIG_PROBLEMS + 9)}})
    found = check(text.encode(), "config.json", {})
    assert len(found.problems) == CONFIG_PROBLEMS
    assert found.more == 10  # with the one that there are no servers


def test_secrets_of_a_text_are_neither_said_nor_kept() -> None:
    before = registered()
    secret = "0f-the-user-s3cr3t"
    entry = {"url": "https://x.example/mcp", "headers": {"Authorization": f"Bearer {secret}"}}
    found = check(json.dumps({"mcpServers": {"x": entry}, "expose": secret}).encode(), "config.json", {})
    assert "expose" in found.problems[0].text
    assert secret not in str(found.problems)
    assert registered() == before
    assert redact(secret) == secret


def test_temporary_secrets_end_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), temporary_secrets():
        raise ZeroDivisionError
    assert redact("nothing to hide") == "nothing to hide"


keys = st.one_of(st.sampled_from(["a", "b", "a.b", "a b", "c[0]", ""]), st.text(max_size=3))
values = st.recursive(
    st.integers(0, 9), lambda inner: st.dictionaries(keys, inner, max_size=3) | st.lists(inner, max_size=2)
)


@given(st.dictionaries(keys, values, max_size=4), st.sampled_from([None, 1]))
def test_a_member_of_the_top_is_found_by_its_path(document: dict[str, object], indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    paths = [member("", key) for key in document]
    for key, path in zip(document, paths, strict=True):
        if paths.count(path) > 1:
            continue
        line, column = Places(text).of(path)
        at = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
        assert text[at:].startswith(json.dumps(key)), path
