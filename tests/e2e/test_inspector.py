"""The Inspector's one-shot CLI in front of the installed command, over stdio and HTTP, in both eras.

It offers neither progress nor sampling nor elicitation and can't take a call back; what it leaves out its
other command does (`test_inspector_connection`), or the SDK's client (`test_real_clients`).
"""

import json

import pytest
from helpers.inspector_targets import EVERY_KIND, RESOURCE, Referee, columns

pytestmark = pytest.mark.npm

TOOL_ERROR, UNAUTHORIZED, OTHER_ERROR = 5, 3, 1
"""The Inspector's exit codes."""

each_of_both = pytest.mark.parametrize(("server", "era"), [("stdio", "legacy"), ("http", "modern")])


@columns
def test_it_lists_the_meta_tools_and_the_pinned_and_finds_no_fault_with_their_schemas(
    referee: Referee, server: str, era: str
) -> None:
    listed = referee.inspector.ask(server, era, "tools/list", "--strict")
    names = [tool["name"] for tool in listed.result["tools"]]
    assert names == ["search_tools", "describe_tool", "execute_tool", "shop__book_table", "shop__show"]
    assert listed.code == 0


@columns
def test_it_calls_a_tool_through_execute_tool_and_by_its_own_name(
    referee: Referee, server: str, era: str
) -> None:
    calls = {"execute_tool": {"name": "shop__show", "arguments": {}}, "shop__show": {}}
    for tool, arguments in calls.items():
        words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        shown = referee.inspector.ask(server, era, "tools/call", *words)
        meta = {key: value for key, value in shown.result.pop("_meta").items() if "serverInfo" not in key}
        assert {**shown.result, "_meta": meta} == EVERY_KIND
        assert shown.code == 0


@each_of_both
def test_it_reads_a_resource_and_gets_a_prompt(referee: Referee, server: str, era: str) -> None:
    ask = referee.inspector.ask
    (read,) = ask(server, era, "resources/read", "--uri", RESOURCE).result["contents"]
    assert (read["uri"], read["text"]) == (RESOURCE, "Nothing to report.")
    told = ("--prompt-name", "shop__review", "--prompt-args", "file=a.py")
    (message,) = ask(server, era, "prompts/get", *told).result["messages"]
    assert message["content"]["text"] == "Review a.py, please."


@each_of_both
def test_it_lists_resources_templates_and_prompts(referee: Referee, server: str, era: str) -> None:
    ask = referee.inspector.ask
    (resource,) = ask(server, era, "resources/list").result["resources"]
    assert resource["uri"] == RESOURCE
    (template,) = ask(server, era, "resources/templates/list").result["resourceTemplates"]
    assert template["uriTemplate"] == "mcpzip://shop/memo://{day}"
    (prompt,) = ask(server, era, "prompts/list").result["prompts"]
    assert prompt["name"] == "shop__review"


@each_of_both
def test_it_can_tell_the_ways_to_fail_apart(referee: Referee, server: str, era: str) -> None:
    def execute(name: str) -> tuple[int, str]:
        words = ("--tool-name", "execute_tool", "--tool-args-json", json.dumps({"name": name}))
        answer = referee.inspector.ask(server, era, "tools/call", *words)
        return answer.code, answer.text if answer.result else answer.error["message"]

    assert execute("shop__fail") == (TOOL_ERROR, "on fire")
    assert execute("shop__refuse") == (OTHER_ERROR, "out of paper")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_without_the_token_it_is_not_let_in(referee: Referee, era: str) -> None:
    refused = referee.inspector.ask("stranger", era, "tools/list", "--stored-auth-only")
    assert refused.code == UNAUTHORIZED
    assert refused.error["code"] == "auth_required"


@each_of_both
def test_a_hundred_calls_of_its_load_test_all_succeed(referee: Referee, server: str, era: str) -> None:
    words = ("--tool-name", "execute_tool", "--tool-args-json", json.dumps({"name": "shop__show"}))
    load = ("--load", "--load-requests", "100", "--load-concurrency", "8")
    before = len(referee.shop.record.calls("show"))
    summary = referee.inspector.ask(server, era, "tools/call", *words, *load).result
    assert (summary["requests"], summary["ok"], summary["errorRate"]) == (100, 100, 0)
    assert len(referee.shop.record.calls("show")) - before == 100
