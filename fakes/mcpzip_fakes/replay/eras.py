"""Whether the recorded messages can be sent to a client, by its transport and era (pure)."""

from collections.abc import Sequence

from mcpzip.cassettes.cassette import Cassette
from mcpzip.wire import Era, read_opening
from mcpzip_fakes.replay.matching import Recorded
from mcpzip_fakes.replay.messages import Message, read
from mcpzip_fakes.scenario import Scenario

_COMPUTED = frozenset({"flood", "list-changed", "endless-pages", "cursor-loop", "empty-cursor"})
"""Faults that need a server which makes its answers: recorded ones can't be changed so."""


class RecordedEras:
    """The eras of a cassette."""

    def __init__(
        self, scenario: Scenario, cassette: Cassette, exchanges: Sequence[Recorded], transport: str
    ) -> None:
        """transport: of the client."""
        self.usable = cassette.transport == transport and not any(
            fault.kind in _COMPUTED for fault in scenario.faults
        )
        """Whether any recorded message can be sent."""
        self._legacy = bool(scenario.legacy_versions)
        self._modern = bool(scenario.modern_versions)
        openings = [(each, opening_era(each.message)) for each in exchanges]
        modern = [each for each, era in openings if era is Era.MODERN]
        self._has_legacy = any(era is Era.LEGACY for _, era in openings) or not modern
        self._has_modern = any(
            event.kind == "reply" and (reply := read(event.data)).kind == "response" and not reply.failed
            for each in modern
            for event in each.exchange.events
        )
        self._everything = scenario.replay is not None and scenario.replay.new
        """Whether the real server answers what wasn't recorded."""
        self._has_discover = any(each.message.method == "server/discover" for each in modern)

    @property
    def any(self) -> bool:
        """Whether recorded messages can answer any client."""
        return self.usable and ((self._legacy and self._has_legacy) or (self._modern and self._has_modern))

    def has(self, request: Message) -> bool:
        """Whether recorded messages can answer a client that opens its session with ``request``."""
        if not self.usable:
            return False
        if self._everything:
            return True
        match opening_era(request):
            case Era.LEGACY:
                return self._legacy and self._has_legacy
            case Era.MODERN:
                probed = request.method == "server/discover" and self._has_discover
                return self._modern and (self._has_modern or (probed and self._legacy))
            case _:
                return True


def opening_era(message: Message) -> Era | None:
    """The era of the client that sent ``message``; None if the message doesn't show it."""
    if message.kind != "request":
        return None
    opening = read_opening(message.method, message.params or None)
    return None if opening is None else opening.era
