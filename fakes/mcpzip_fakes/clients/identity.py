"""Who a client says it is, what it can be asked, and what it answers.

The rule: a client declares the capabilities for which it has answers, and those in ``capabilities``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcpzip.wire import LATEST_LEGACY_VERSION
from mcpzip_fakes.answer import JsonObject

SAMPLE, ELICIT, LIST_ROOTS = "sampling/createMessage", "elicitation/create", "roots/list"

Says = Mapping[str, object] | Callable[[JsonObject], Mapping[str, object] | None]
"""The result with which a client answers a question; or a function of the question's params that returns it,
or None to leave the question open (`Client.answer`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """name, version: as in ``clientInfo``; protocol: the version of MCP that it asks for; capabilities:
    declared beside those that follow from its answers; roots: their URIs, None for a client without roots;
    sampling, elicitation: its answers."""

    name: str = ""
    version: str = "1"
    protocol: str = LATEST_LEGACY_VERSION
    capabilities: Mapping[str, object] = field(default_factory=dict)
    roots: tuple[str, ...] | list[str] | None = None
    sampling: Says | None = None
    elicitation: Says | None = None

    def answers(self) -> dict[str, Says]:
        """Its answers by the method of the question."""
        found: dict[str, Says] = {}
        if self.sampling is not None:
            found[SAMPLE] = self.sampling
        if self.elicitation is not None:
            found[ELICIT] = self.elicitation
        if self.roots is not None:
            found[LIST_ROOTS] = {"roots": [{"uri": uri} for uri in self.roots]}
        return found

    def declared(self) -> JsonObject:
        """The capabilities that it declares."""
        followed: JsonObject = {}
        if self.sampling is not None:
            followed["sampling"] = {}
        if self.elicitation is not None:
            followed["elicitation"] = {"form": {}, "url": {}}
        if self.roots is not None:
            followed["roots"] = {"listChanged": True}
        return {**followed, **self.capabilities}
