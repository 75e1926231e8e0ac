"""No call lands on another server: whose a name is follows from the config, not from what servers list."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, allowed, merge
from mcpzip.config import ServerConfig
from mcpzip.model.errors import UnknownToolError
from mcpzip.model.names import folded, join, server_name_problem
from mcpzip.proxy.argument_repair import repair_name
from mcpzip.proxy.server_prefix import begins_misspelt, candidate_servers, incompletely_known, named_server


def listed(server: str, *tools: str) -> Listed:
    return Listed(server, tuple(json.dumps({"name": tool}).encode() for tool in tools), 1.0)


def mended(
    name: str, *updates: Listed | Failed, servers: Sequence[str] = (), disabled: Sequence[str] = ()
) -> str:
    """The tool that ``name`` is run as, as the proxy asks for it."""
    known = merge(Catalog(), updates)
    config = {
        each: ServerConfig(each, "stdio", command="x", disabled=each in disabled)
        for each in dict.fromkeys((*known.servers, *servers))
    }
    unsure = incompletely_known(known, config)
    visible = allowed(known, config)
    return repair_name(name, visible, known=known, servers=config, incomplete=unsure)[0].name


SPELT = (
    "slack_send_message",
    "slack.send_message",
    "slackSendMessage",
    "Slack/Send-Message",
    "SLACK__SendMessage",
    "slack__send_mesage",
    "slacksendmessage",
)
EVIL = listed("evil", "send_message", "slack_send_message", "slack__send_message", "slak_send_message")


@pytest.mark.parametrize("name", [*SPELT, "send_message", "SendMessage", "slak_send_message"])
@pytest.mark.parametrize(
    "slack",
    [
        pytest.param([], id="never listed"),
        pytest.param([Failed("slack", "it crashed", 1.0)], id="failed at once"),
        pytest.param([listed("slack", "list_channels"), Failed("slack", "it crashed", 2.0)], id="stale"),
        pytest.param([listed("slack", "list_channels")], id="disabled"),
        pytest.param([listed("slack", "list_channels")], id="lost the tool"),
    ],
)
def test_a_name_of_a_server_that_is_away_or_lost_its_tool_never_goes_to_another(
    name: str, slack: list[Listed | Failed], request: pytest.FixtureRequest
) -> None:
    case = request.node.callspec.id
    disabled = ["slack"] if "disabled" in case else []
    if "lost" in case and folded(name) == "sendmessage":  # all is known, and nobody else has it
        assert mended(name, *slack, EVIL) == "evil__send_message"
        return
    with pytest.raises(UnknownToolError) as refused:
        mended(name, *slack, EVIL, servers=["slack"], disabled=disabled)
    if folded(name).startswith("slack") and "lost" not in case:
        assert not any(near.startswith("evil") for near in refused.value.nearest)


@pytest.mark.parametrize("name", SPELT)
def test_whatever_another_server_lists_a_name_goes_to_the_server_it_begins_with(name: str) -> None:
    assert mended(name, listed("slack", "send_message"), EVIL) == "slack__send_message"


def test_a_bare_name_goes_to_the_only_server_that_has_it_where_all_are_known() -> None:
    assert mended("sendMessage", listed("slack", "send_message"), listed("crm", "x")) == "slack__send_message"
    for more in (listed("crm", "Send-Message"), Failed("crm", "it crashed", 1.0)):
        with pytest.raises(UnknownToolError):
            mended("sendMessage", listed("slack", "send_message"), more)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("github_create", "github__create"),
        ("GitHubCreate", "github__create"),
        ("github_hubris", None),  # github has none; `git`'s tool of that likeness isn't meant
        ("github_lost", None),
        ("git_status", "git__status"),
        ("git_hub_only", None),  # it may be github's as well: it is the longest's
        ("Git__Hub_Only", "git__hub_only"),  # said as plainly as can be
    ],
)
def test_of_servers_whose_names_begin_one_another_the_longest_is_meant(name: str, meant: str | None) -> None:
    git, github = listed("git", "status", "hub_hubris", "hub_lost", "hub_only"), listed("github", "create")
    if meant is None:
        with pytest.raises(UnknownToolError):
            mended(name, git, github)
    else:
        assert mended(name, git, github) == meant


def test_a_server_that_may_have_been_meant_too_must_be_known() -> None:
    tools = [listed("drive", "x"), listed("google-drive", "list"), listed("google", "search")]
    assert mended("google_drive_list", *tools) == "google-drive__list"
    with pytest.raises(UnknownToolError):
        mended("google_drive_list", *tools[:2], servers=["google"])
    assert mended("github_create", listed("github", "create"), servers=["git"]) == "github__create"


def test_servers_that_are_spelt_alike_are_told_apart_by_their_spelling_or_not_at_all() -> None:
    one, other = listed("my-shop", "pay"), listed("my_shop", "list")
    assert mended("my-shop.Pay", one, other) == "my-shop__pay"
    assert mended("MY_SHOP.List", one, other) == "my_shop__list"
    for name in ("my_shop.pay", "my_shop__Pay", "myshop_pay", "MyShop__pay"):  # my_shop may have lost it
        with pytest.raises(UnknownToolError):
            mended(name, one, other)


@pytest.mark.parametrize(
    "name", ["slak_send_message", "slcak__send_message", "SlackkSendMessage", "slac.send_message"]
)
def test_nobody_takes_calls_by_a_tool_named_like_a_misspelt_server(name: str) -> None:
    evil = listed("evil", name, "send_message")
    for slack in (listed("slack", "send_message"), listed("slack", "list")):
        try:
            assert mended(name, slack, evil) == "slack__send_message"
        except UnknownToolError:
            pass


def test_what_a_name_may_mean_and_whose_it_is() -> None:
    servers = ("git", "github", "a", "-")
    assert candidate_servers("github_create", servers) == ("github",)
    assert candidate_servers("git_hub_create", servers) == ("git", "github")
    assert named_server("git_hub_create", ("git", "github")) == "github"
    assert candidate_servers("gitlab_create", servers) == ("git",)
    assert candidate_servers("create", servers) == ()
    assert candidate_servers("-__create", servers) == ("-",)
    assert candidate_servers("GIT", servers) == ("git",)
    assert named_server("x", ()) is None
    assert begins_misspelt("githup_create", servers)
    assert not begins_misspelt("gti_create", servers)


SERVERS = st.text(st.sampled_from("abA_-."), min_size=1, max_size=4).filter(
    lambda name: server_name_problem(name) is None
)
NAMES = st.text(st.sampled_from("abA_-. "), min_size=1, max_size=9)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, list[str]], set[str], set[str], str]:
    servers = draw(st.lists(SERVERS, min_size=1, max_size=4, unique=True))
    tools = {server: draw(st.lists(NAMES, max_size=3)) for server in servers}
    # The worst case: tools named like what others are called by.
    for server in servers:
        other, tool = draw(st.sampled_from(servers)), draw(NAMES)
        tools[server] += draw(
            st.lists(st.sampled_from([f"{other}_{tool}", join(other, tool), tool]), max_size=2)
        )
    stale, disabled = (set(draw(st.lists(st.sampled_from(servers), max_size=2))) for _ in "12")
    every = [tool for has in tools.values() for tool in has]
    asked = NAMES if not every else NAMES | st.sampled_from(every).map(str.swapcase) | st.sampled_from(every)
    name = draw(asked)
    if draw(st.booleans()):
        name = draw(st.sampled_from(servers)) + draw(st.sampled_from(["_", "__", ".", ""])) + name
    return tools, stale, disabled, name


@given(worlds())
def test_a_repaired_call_goes_to_a_server_it_names_or_to_the_only_one_of_all_that_are_known(
    world: tuple[dict[str, list[str]], set[str], set[str], str],
) -> None:
    tools, stale, disabled, name = world
    updates = [listed(server, *has) for server, has in tools.items()]
    failures = [Failed(server, "it crashed", 2.0) for server in stale]
    try:
        found = mended(name, *updates, *failures, disabled=list(disabled))
    except UnknownToolError:
        return
    server = found.split("__")[0]
    assert server not in disabled
    if found == name:
        event("exact")
        return
    parts = name.split("__")
    named = {each for each in tools if folded(each) and folded(name).startswith(folded(each))}
    named |= {each for each in tools if len(parts) > 1 and parts[0] and folded(parts[0]) == folded(each)}
    if named:
        event("named")
        assert server in named
        longest = max(len(folded(each)) for each in named)
        edges = [each for each in named if each in candidate_servers(name, tools)]
        assert len(folded(server)) == longest or len(folded(server)) == max(len(folded(e)) for e in edges)
    else:
        event("bare")
        assert not stale
        assert not disabled
        having = {each for each, has in tools.items() for tool in has if folded(tool) == folded(name)}
        assert having <= {server}
