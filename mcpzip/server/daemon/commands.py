"""What commands such as `mcpzip ps` ask of the daemon, and its answers: JSON values, or JSON texts (bytes)
where they are long.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from mcpzip import __version__
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.daemon.call_report import calls_answer
from mcpzip.server.daemon.report import DaemonReport


class Daemon(Protocol):
    """What the commands need of it."""

    def report(self) -> DaemonReport: ...

    def stop(self) -> None: ...

    def running(self) -> Iterable[Proxy]:
        """The proxies."""
        ...


async def ping(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Whether it runs."""
    return {"pid": os.getpid(), "version": __version__}


async def report(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Its clients and servers."""
    return msgspec.to_builtins(daemon.report())


async def stop(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Ends the daemon."""
    daemon.stop()
    return {"pid": os.getpid()}


async def disconnect(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Ends the processes of the server ``server`` for all clients; ``again``: and connects to it anew."""
    server, again = said.get("server"), said.get("again") is True
    found = [proxy for proxy in daemon.running() if server in proxy.config.servers]
    closed = sum(one.server == server for proxy in found for one in proxy.open_connections())
    for proxy in found:
        proxy.disconnect(str(server), again=again)
    servers = sorted({name for proxy in daemon.running() for name in proxy.config.servers})
    return {"known": bool(found), "closed": closed, "servers": servers}


async def calls(daemon: Daemon, said: Mapping[str, object]) -> object:
    """The last calls, ``since`` a change and ``before`` a number; see `calls_answer`."""
    since, before = (number if isinstance(number := said.get(key), int) else 0 for key in ("since", "before"))
    remembered = [proxy.tool_caller.calls for proxy in daemon.running()]
    return msgspec.json.encode(calls_answer(remembered, os.getpid(), since, before))


COMMANDS: Mapping[object, Callable[[Daemon, Mapping[str, object]], Awaitable[object]]] = {
    "ping": ping,
    "report": report,
    "calls": calls,
    "stop": stop,
    "disconnect": disconnect,
}
