"""What clients did with mcpzip since it started: the numbers of `mcpzip status`."""

import time

import msgspec

CLIENTS_AT_MOST = 50
"""Clients that are told apart; the rest isn't listed."""
TOOLS_AT_MOST = 1_000
"""Tools of whose kept results there are counts."""
CLIENT_INFO_SIZE = 4096
"""Bytes of a client's `Implementation`; a longer one isn't kept."""


class ServerCalls(msgspec.Struct):
    """calls: those that were sent to a server. errors: those of them that brought an error, or no result."""

    calls: int = 0
    errors: int = 0


class Replies(msgspec.Struct):
    """The replies of one of mcpzip's own tools. size: bytes of the arguments and of the results, as JSON."""

    count: int = 0
    size: int = 0


class KeptResultsOfTool(msgspec.Struct):
    """The results of one tool that were kept. tokens: about how many were not sent because of that; what was
    read on is taken off.
    """

    count: int = 0
    tokens: int = 0


class ClientSeen(msgspec.Struct, frozen=True):
    """A client. info: its `Implementation`, JSON text. since: Unix time of its first request."""

    info: bytes
    since: float


class Statistics(msgspec.Struct):
    """The counts of one proxy. Belongs to its event loop.

    rate_limited: calls that were refused for the `rate_limits`. counted_locally: those that the store
    couldn't count.
    """

    started_at: float = msgspec.field(default_factory=time.time)
    searches: int = 0
    rate_limited: int = 0
    counted_locally: int = 0
    replies: dict[str, Replies] = {}
    servers: dict[str, ServerCalls] = {}
    clients: dict[bytes, ClientSeen] = {}
    kept: dict[str, KeptResultsOfTool] = {}

    def count_call(self, server: str, *, failed: bool) -> None:
        """Counts a call that has ended."""
        counts = self.servers.get(server)
        if counts is None:
            counts = self.servers[server] = ServerCalls()
        counts.calls += 1
        counts.errors += failed

    def count_reply(self, tool: str, arguments: bytes | None, result: bytes) -> None:
        """Counts a reply of mcpzip's own ``tool``. Its texts are measured in bytes, because counting their
        tokens would take longer than all else about a reply.
        """
        counts = self.replies.get(tool)
        if counts is None:
            counts = self.replies[tool] = Replies()
        counts.count += 1
        counts.size += len(arguments or b"") + len(result)

    def count_kept(self, tool: str, tokens: int, results: int = 1) -> None:
        """Counts ``results`` of ``tool`` that were kept, and ``tokens`` that were not sent; negative for what
        is read on.
        """
        counts = self.kept.get(tool)
        if counts is None:
            if len(self.kept) >= TOOLS_AT_MOST:
                return
            counts = self.kept[tool] = KeptResultsOfTool()
        counts.count += results
        counts.tokens += tokens

    def saw_client(self, info: bytes) -> None:
        """Remembers the client with the `Implementation` ``info``, JSON text."""
        if info not in self.clients and len(self.clients) < CLIENTS_AT_MOST and len(info) <= CLIENT_INFO_SIZE:
            self.clients[info] = ClientSeen(info, time.time())
