"""Requests that nobody waits for any more, and about which a server may still speak (pure).

The rule: a server may ignore a cancellation, and then asks and logs as if nothing had happened. Its messages
name no request, so for a while one that arrives can be about an abandoned request as well as about an open
one.
"""

from mcpzip.model.limits import ABANDONED


class AbandonedRequests:
    """Whose requests were cancelled, or timed out, on one connection or at one server.

    Two owners are kept: with two no message can be attributed, however many more there are.
    """

    def __init__(self) -> None:
        self._until: list[tuple[object, float]] = []

    def add(self, owner: object, now: float) -> None:
        """A request of ``owner`` was given up. now: in seconds, of any clock that only goes forward."""
        others = [one for one in self._until if one[0] is not owner]
        self._until = [*others[-1:], (owner, now + ABANDONED)]

    def owners(self, now: float) -> list[object]:
        """The owners of such requests, each once."""
        self._until = [one for one in self._until if one[1] > now]
        return [owner for owner, _ in self._until]
