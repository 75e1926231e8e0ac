"""Replicas of a subject, and the balancer before them, which is a part of the runner's client.

The rule: the balancer knows nothing of MCP. A request goes to the next replica that takes a connection, on a
connection of its own, with the Host of that replica; a request that was sent is never sent again. Each
replica has a home and a config of its own, as if it were another machine: they share what the subject's file
gives them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

import httpx

from mcpzip_conformance.channel.http import tls_context
from mcpzip_conformance.declaration import Change
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.http_subject import Listening
from mcpzip_conformance.player import Player

_EACH = 0.01
"""Seconds between two attempts to connect."""

Starting = Callable[[Change | None], Awaitable[Listening]]
"""Starts the process of one replica with this change, always with the same ports and home."""


class Replica:
    """One process of the subject, and its URL."""

    def __init__(self, start: Starting) -> None:
        self._start = start
        self.listening: Listening

    @property
    def url(self) -> str:
        """Where it serves."""
        return self.listening.url

    async def start(self, change: Change | None = None) -> None:
        """Start it, or start it again when its process has ended. change: what is different of it than in the
        subject's file. Raises Finding."""
        if hasattr(self, "listening"):
            await self.listening.process.end(0.0)
        self.listening = await self._start(change)

    async def kill(self) -> None:
        """SIGKILL, for it alone."""
        self.listening.process.kill()
        await self.listening.process.exited.wait()

    def terminate(self) -> None:
        """SIGTERM."""
        self.listening.process.terminate()

    async def refuses(self, patience: float) -> None:
        """Wait until it takes no connections any more. Raises NoAnswerError."""
        where = urlsplit(self.url)
        try:
            async with asyncio.timeout(patience):
                while True:
                    _, writer = await asyncio.open_connection(where.hostname, where.port)
                    writer.close()
                    await asyncio.sleep(_EACH)
        except ConnectionError:
            return
        except TimeoutError:
            raise NoAnswerError(f"{patience:g} s after SIGTERM it still takes connections.") from None

    async def ends(self, patience: float) -> None:
        """Wait until its process has ended. Raises Finding."""
        if not await self.listening.process.exits(patience):
            raise Finding(f"{patience:g} s after SIGTERM its process still runs.")


class Balancer(httpx.AsyncBaseTransport):
    """Before all replicas, for one client. only: the replica to which its requests go; None for each in
    turn, beginning with ``next``."""

    def __init__(self, replicas: list[Replica], sender: httpx.AsyncBaseTransport) -> None:
        self._replicas, self._sender = replicas, sender
        self.only: int | None = None
        self.next = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx."""
        error = httpx.ConnectError("no replica takes connections")
        for number in self._turns():
            try:
                return await self._sender.handle_async_request(self._to(request, self._replicas[number]))
            except httpx.ConnectError as refused:
                error = refused
        raise error

    def _turns(self) -> list[int]:
        if self.only is not None:
            return [self.only]
        count = len(self._replicas)
        first, self.next = self.next, (self.next + 1) % count
        return [(first + more) % count for more in range(count)]

    @staticmethod
    def _to(request: httpx.Request, replica: Replica) -> httpx.Request:
        where = httpx.URL(replica.url)
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
        kept = b"host" in {name.lower(): value for name, value in request.headers.raw}
        host = request.headers.get("host", "")
        ours = host == request.url.netloc.decode() or not kept
        headers.insert(0, (b"Host", where.netloc if ours else host.encode()))
        return httpx.Request(
            request.method,
            request.url.copy_with(scheme=where.scheme, host=where.host, port=where.port),
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )


class Cluster:
    """The replicas of one check. players: a client of the legacy era for each replica, whose session began
    there, and whose requests all go there until `send_to` says otherwise."""

    def __init__(self, replicas: list[Replica]) -> None:
        self.replicas = replicas
        self.players: list[Player] = []
        self._balancers: dict[Player, Balancer] = {}
        self._sender = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,
            verify=tls_context(),
        )

    def __len__(self) -> int:
        return len(self.replicas)

    @property
    def numbers(self) -> range:
        """Of its replicas, from 0."""
        return range(len(self.replicas))

    async def start(self, changes: Sequence[Change | None] = ()) -> None:
        """Start every replica. changes: of each, if there are some. Raises Finding."""
        changes = changes or [None] * len(self)
        starts = (each.start(change) for each, change in zip(self.replicas, changes, strict=True))
        begun = await asyncio.gather(*starts, return_exceptions=True)
        if wrong := next((each for each in begun if each is not None), None):
            raise wrong

    def balancer(self) -> Balancer:
        """One for a client."""
        return Balancer(self.replicas, self._sender)

    def serves(self, player: Player, balancer: Balancer) -> None:
        """Remember which client has which balancer."""
        self._balancers[player] = balancer

    def send_to(self, player: Player, number: int | None) -> Player:
        """Have the next requests of a client go to this replica; None: to each in turn. Returns the
        client."""
        self._balancers[player].only = number
        return player

    async def end(self) -> None:
        """End every replica."""
        await self._sender.aclose()
        running = [each.listening.process for each in self.replicas if hasattr(each, "listening")]
        for process in running:
            process.terminate()
        await asyncio.gather(*(process.end(2.0) for process in running))
