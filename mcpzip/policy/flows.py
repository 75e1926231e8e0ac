"""Calls that depend on what a session has seen before: results of one server must not go to another (pure).

The rules:

1. A flow counts from the moment a session's call, prompt or resource was asked of what its ``from`` matches.
2. Of the flows that count and whose ``to`` matches a tool, the first in the config decides. It makes the
   decision about the call stricter, never milder.
3. A tool that only reads and doesn't reach out can't carry anything away, so no flow matters to it.
"""

import re
from collections.abc import Callable, Collection
from fnmatch import translate

import msgspec

from mcpzip.config.schema import DECISIONS, Decision, FlowConfig
from mcpzip.model.entry import Entry
from mcpzip.model.names import join
from mcpzip.model.risk import Risk

_SEPARATOR = join("", "")


class Flow(msgspec.Struct, frozen=True):
    """path: its key path in the config. source: its ``from``."""

    path: str
    source: str
    decision: Decision


class _Compiled(msgspec.Struct, frozen=True):
    config: FlowConfig
    flow: Flow
    comes_from: Callable[[str, str], bool]
    goes_to: Callable[[str, str], bool]


class Flows:
    """The flows of one config."""

    def __init__(self, flows: Collection[FlowConfig]) -> None:
        self._flows = [
            _Compiled(
                each,
                Flow(f"policy.flows[{at}]", each.source, each.decision),
                _matcher(each.source),
                _matcher(each.target),
            )
            for at, each in enumerate(flows)
        ]

    def begun_by(self, server: str, name: str = "") -> Collection[FlowConfig]:
        """The flows that count for a session once it has asked ``server`` for something. name: of the tool,
        with its server; "" for a prompt or a resource.
        """
        return [each.config for each in self._flows if each.comes_from(server, name)]

    def decision(self, entry: Entry, risk: Risk, begun: Collection[FlowConfig]) -> Flow | None:
        """The flow that decides about a call of ``entry``; None if none does. begun: those that count."""
        if risk.effect == "reads" and not risk.reaches_out:
            return None
        name = entry.name
        return next(
            (each.flow for each in self._flows if each.config in begun and each.goes_to(entry.server, name)),
            None,
        )

    def may_ask(self, entry: Entry, risk: Risk) -> bool:
        """Whether a person may have to be asked about ``entry``."""
        asking = [each.config for each in self._flows if each.config.decision == "ask"]
        return self.decision(entry, risk, asking) is not None


def is_stricter(flow: Flow, decision: Decision) -> bool:
    """Whether ``flow`` is stricter than ``decision``."""
    return DECISIONS.index(flow.decision) > DECISIONS.index(decision)


def _matcher(glob: str) -> Callable[[str, str], bool]:
    """Whether a server, or a tool by its whole name, matches: a glob without ``__`` is one of servers."""
    matches = re.compile(translate(glob)).match
    if _SEPARATOR in glob:
        return lambda server, name: matches(name) is not None
    return lambda server, name: matches(server) is not None
