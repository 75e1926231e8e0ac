"""A name that isn't there leads to the ones that are like it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Listed, merge


def catalog_of(*names: str) -> Catalog:
    tools: dict[str, list[bytes]] = {}
    for name in names:
        server, _, tool = name.partition("__")
        tools.setdefault(server, []).append(json.dumps({"name": tool}).encode())
    return merge(Catalog(), [Listed(server, tuple(raws), 1.0) for server, raws in tools.items()])


WORK = catalog_of(
    "slack__send_message",
    "slack__delete_message",
    "slack__channels_list",
    "telegram__send_msg",
    "todoist__createTask",
    "github__create_issue",
    "github__issues.list",
    "gitlab__create_issue",
    "time__now",
    "zh__发送消息",
)


@pytest.mark.parametrize(
    ("asked", "best"),
    [
        ("slack__send_mesage", "slack__send_message"),
        ("slack__sendMessage", "slack__send_message"),
        ("Slack.Send-Message", "slack__send_message"),
        ("slack_send_message", "slack__send_message"),
        ("mcp__mcpzip__slack__send_message", "slack__send_message"),
        ("send_message", "slack__send_message"),
        ("message_send", "slack__send_message"),
        ("create_task", "todoist__createTask"),
        ("todoist__task_create", "todoist__createTask"),
        ("asana__create_task", "todoist__createTask"),
        ("github__issue_create", "github__create_issue"),
        ("github:issues/list", "github__issues.list"),
        ("channel_list", "slack__channels_list"),
        ("time__nwo", "time__now"),
        ("zh__发送", "zh__发送消息"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(asked, best):
    assert WORK.nearest(asked)[0] == best


def test_a_bare_tool_of_two_servers_leads_to_both():
    assert WORK.nearest("create_issue", 2) == ("github__create_issue", "gitlab__create_issue")


@pytest.mark.parametrize("asked", ["", "__", "zzzzqqq", "🙂", "x"])
def test_a_name_like_none_leads_to_none(asked):
    assert WORK.nearest(asked) == ()


def test_no_more_names_than_asked_for():
    assert len(WORK.nearest("slack__send_message", 1)) == 1
    assert WORK.nearest("slack__send_message", 0) == ()
    assert Catalog().nearest("slack__send_message") == ()


@pytest.mark.parametrize(
    ("asked", "alike"),
    [
        ("Slack.sendMessage", ("slack__send_message",)),
        ("SEND MESSAGE", ("slack__send_message",)),
        ("createIssue", ("github__create_issue", "gitlab__create_issue")),
        ("github-create-issue", ("github__create_issue",)),
        ("send_mesage", ()),
        ("", ()),
        ("_", ()),
    ],
)
def test_names_are_alike_when_only_case_separators_or_the_server_differ(asked, alike):
    assert WORK.alike(asked) == alike


NAMES = st.lists(
    st.text("abAB_.", min_size=1, max_size=8).map(lambda tool: f"s__{tool}"), max_size=8, unique=True
)


@given(NAMES, st.text("abAB_.s", max_size=8), st.integers(0, 5))
def test_the_names_given_exist_are_different_and_no_more_than_asked(names, asked, n):
    catalog = catalog_of(*names)
    found = catalog.nearest(asked, n)
    assert len(found) <= n
    assert len(set(found)) == len(found)
    assert all(catalog.get(name) for name in (*found, *catalog.alike(asked)))


@given(NAMES.filter(bool))
def test_a_name_in_another_case_is_nearest_to_itself(names):
    catalog = catalog_of(*names)
    for name in names:
        if any(letter in name.lower() for letter in "ab"):
            assert name.casefold() in {found.casefold() for found in catalog.alike(name.swapcase())}
            assert catalog.nearest(name.swapcase(), len(names))
