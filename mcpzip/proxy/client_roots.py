"""What clients say are their roots.

The rule: a client is asked once, when it first uses a server that wants to know them, and again after it has
said that they have changed. Roots are equal if all that the client said of them is equal.
"""

import asyncio
import json

import msgspec

from mcpzip.model import limits
from mcpzip.proxy.call import ask_client
from mcpzip.proxy.exchange import Client, SendRequest
from mcpzip.wire import Era, JsonRpcError

LIST_ROOTS = "roots/list"
ROOTS_CHANGED = "notifications/roots/list_changed"
ROOTS_TIMEOUT = 2.0
"""Seconds a client has to say what its roots are. One that doesn't shares no connection on which they matter.
"""


class Roots(msgspec.Struct, frozen=True):
    """The roots of a client. key: the same for equal roots only. result: of `roots/list`, JSON text."""

    key: str
    result: bytes


class ClientRoots:
    """The roots of all clients. Everything runs on one event loop."""

    def __init__(self) -> None:
        self._asked: dict[Client, asyncio.Task[Roots | None]] = {}

    def is_known(self, client: Client) -> bool:
        """Whether it is known what ``client`` says, or that it says nothing."""
        asked = self._asked.get(client)
        return client.era is Era.MODERN or (asked is not None and asked.done())

    def of(self, client: Client) -> Roots | None:
        """Those of ``client``; None if it doesn't say what they are, or wasn't asked yet. A modern client can
        only be asked in a call.
        """
        asked = self._asked.get(client)
        return None if asked is None or not asked.done() or asked.cancelled() else asked.result()

    async def ask(self, client: Client, way: SendRequest | None) -> None:
        """Asks ``client`` unless it is being asked, until it is known what it says. way: see `ask_client`."""
        while not self.is_known(client):
            asked = self._asked.get(client)
            if asked is None:
                asked = self._asked[client] = asyncio.create_task(_ask(client, way), name="roots")
            await asyncio.wait({asked})

    def forget(self, client: Client) -> None:
        """What it said holds no more."""
        if (asked := self._asked.pop(client, None)) is not None:
            asked.cancel()

    async def close(self) -> None:
        """Asks nobody any more."""
        asked = list(self._asked.values())
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def _ask(client: Client, way: SendRequest | None) -> Roots | None:
    try:
        async with asyncio.timeout(ROOTS_TIMEOUT):
            return read_roots(await ask_client(way, client.capabilities, LIST_ROOTS, None))
    except (JsonRpcError, TimeoutError):
        return None


def read_roots(result: bytes) -> Roots | None:
    """The roots in a result of `roots/list` (JSON text). None for one that is too long, not as it should be,
    or that two readers may read differently.
    """
    if len(result) > limits.ROOTS:
        return None
    try:
        said = json.loads(result, object_pairs_hook=_unambiguous, parse_float=_refuse, parse_constant=_refuse)
        key = json.dumps(said, sort_keys=True)
    except (ValueError, RecursionError):
        return None
    roots = said.get("roots") if isinstance(said, dict) else None
    if not isinstance(roots, list) or not all(isinstance(root, dict) for root in roots):
        return None
    return Roots(key, result)


def _unambiguous(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(number: str) -> object:
    raise ValueError(f"{number} may be read in different ways")
