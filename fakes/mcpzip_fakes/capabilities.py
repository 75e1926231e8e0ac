"""The capabilities of a server: derived from its scenario, unless the scenario sets them.

The rule: only capabilities that the engine implements are declared.
"""

from collections.abc import Sequence

from mcpzip_fakes.answer import JsonObject, json_value
from mcpzip_fakes.definitions import Tool
from mcpzip_fakes.scenario import Scenario
from mcpzip_fakes.subscribers import LIST_FILTERS, RESOURCE_FILTER


def capabilities(told: Scenario, tools: Sequence[Tool]) -> object:
    """The ``capabilities`` of a server that has these tools."""
    if told.capabilities is not None:
        return json_value(told.capabilities)
    answers = [tool.result for tool in tools]
    change = {kind for answer in answers for kind in answer.changes}
    if told.changed_tools or any(fault.kind == "list-changed" for fault in told.faults):
        change.add("tools")
    found: JsonObject = {"tools": _changing("tools", change)}
    if told.resources or told.resource_templates:
        watched: JsonObject = {"subscribe": True} if any(answer.updates for answer in answers) else {}
        found["resources"] = {**watched, **_changing("resources", change)}
    if told.prompts:
        found["prompts"] = _changing("prompts", change)
    if any(prompt.complete for prompt in told.prompts) or any(it.complete for it in told.resource_templates):
        found["completions"] = {}
    if any(answer.log for answer in answers):
        found["logging"] = {}
    return found


def honoured(told: Scenario) -> frozenset[str]:
    """The supported keys in the filter of a `subscriptions/listen`."""
    words = {LIST_FILTERS["tools"]}
    if told.prompts:
        words.add(LIST_FILTERS["prompts"])
    if told.resources or told.resource_templates:
        words |= {LIST_FILTERS["resources"], RESOURCE_FILTER}
    return frozenset(words)


def _changing(kind: str, change: set[str]) -> JsonObject:
    """The part of a capability that says whether the list changes."""
    return {"listChanged": True} if kind in change else {}
