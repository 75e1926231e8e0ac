"""Faults of several processes of which something is replaced, or whose store is away."""

import os
from collections.abc import Mapping
from pathlib import Path

from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.faults.replicas import GATEWAY
from mcpzip_conformance.mutants.relay.counter import Counter
from mcpzip_conformance.mutants.relay.exchange import Headers, Receive, Refusal, Send
from mcpzip_conformance.mutants.relay.gateway import Gateway, Team
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Config, Session


class KnowsOneKey(Gateway):
    """Finds with its first key only."""

    def files(self, kind: str, id: str) -> list[Path]:
        return super().files(kind, id)[: 1 if kind == "session" else None]


class KnowsOneKeyOfStates(Gateway):
    """Finds calls that wait with its first key only."""

    def files(self, kind: str, id: str) -> list[Path]:
        return super().files(kind, id)[: 1 if kind == "state" else None]


class BreaksWithoutKey(Gateway):
    """Answers a session that it doesn't know with an error of its own, after its key was replaced."""

    def __init__(self, config: Config, session: type[Session], team: Team, port: int) -> None:
        super().__init__(config, session, team, port)
        self._replaced = team.shared / "replaced"
        if len(team.keys) > 1:
            self._replaced.touch()

    async def passed_in_session(
        self, verb: str, headers: Headers, body: bytes, receive: Receive | None, send: Send
    ) -> bool:
        id = headers.get("mcp-session-id", "")
        if self._replaced.exists() and not self.recall("session", id):
            raise Refusal(500, "The session can't be read.")
        return await super().passed_in_session(verb, headers, body, receive, send)


class BreaksOfLayouts(Gateway):
    """Answers sessions of another version with an error of its own."""

    def read(self, kind: str, found: dict[str, object]) -> dict[str, str]:
        if kind == "session" and ("layout" in found) != (self.team.layout == 2):
            raise Refusal(500, "The session can't be read.")
        return super().read(kind, found)


class KnowsOneLayout(Gateway):
    """Doesn't know sessions of another version."""

    def read(self, kind: str, found: dict[str, object]) -> dict[str, str]:
        other = kind == "session" and ("layout" in found) != (self.team.layout == 2)
        return {} if other else super().read(kind, found)


class KnowsOneLayoutOfStates(Gateway):
    """Doesn't know calls that wait at another version."""

    def read(self, kind: str, found: dict[str, object]) -> dict[str, str]:
        other = kind == "state" and ("layout" in found) != (self.team.layout == 2)
        return {} if other else super().read(kind, found)


class Waiting(Counter):
    timeout = None


class Ending(Counter):
    def missed(self) -> None:
        os._exit(1)


class Refusing(Counter):
    def missed(self) -> None:
        raise Refusal(503, "The store is away.")


class GivingUp(Counter):
    away = False

    async def count(self) -> None:
        await super().count()
        if self.away:
            raise Refusal(503, "The store is away.")

    def missed(self) -> None:
        self.away = True


class WaitsForStore(Gateway):
    """Waits for its store for as long as that takes."""

    counter = Waiting


class EndsWithStore(Gateway):
    """Ends when its store is away."""

    counter = Ending


class RefusesWithoutStore(Gateway):
    """Makes no call while its store is away."""

    counter = Refusing


class GivesStoreUp(Gateway):
    """Makes no call any more once its store was away."""

    counter = GivingUp


def _fault(about: str, check: str, gateway: type[Gateway], *also: str) -> Fault:
    return Fault(about, f"replicas.{check}", Parts(gateway=gateway), GATEWAY, also)


FAULTS: Mapping[str, Fault] = {
    "knows-one-key": _fault("finds sessions with its first key only", "key-rotation", KnowsOneKey),
    "one-key-for-states": _fault(
        "finds calls that wait with its first key only", "key-rotation-question", KnowsOneKeyOfStates
    ),
    "breaks-without-key": _fault(
        "answers a session of a former key with an error", "key-retired", BreaksWithoutKey
    ),
    "breaks-of-layouts": _fault(
        "answers a session of another version with an error", "upgrade", BreaksOfLayouts
    ),
    "knows-one-layout": _fault("doesn't know sessions of another version", "upgrade-session", KnowsOneLayout),
    "one-layout-for-states": _fault(
        "doesn't know calls that wait at another version", "upgrade-question", KnowsOneLayoutOfStates
    ),
    "ends-with-store": _fault(
        "ends when its store is away",
        "store-away",
        EndsWithStore,
        "replicas.store-hangs",
        "replicas.store-back",
    ),
    "waits-for-store": _fault("waits for its store for ever", "store-hangs", WaitsForStore),
    "refuses-without-store": _fault(
        "makes no call while its store is away", "store-away-serves", RefusesWithoutStore
    ),
    "gives-store-up": _fault(
        "makes no call once its store was away",
        "store-back",
        GivesStoreUp,
        "replicas.store-away",
        "replicas.store-hangs",
    ),
}
