"""What `mcpzip ps` shows of a daemon."""

import os
from collections.abc import Mapping

import msgspec

from mcpzip import __version__
from mcpzip.config import Config
from mcpzip.server.daemon.client import DaemonClient
from mcpzip.server.daemon.proxies import SharedProxy
from mcpzip.wire.client_info import name_and_version


class ClientReport(msgspec.Struct, frozen=True):
    """An agent. pid: of its `mcpzip serve`. agent: of the process that has started that. since: Unix time.
    under_way: how many of its requests are being processed; 0 where an older daemon doesn't say.
    """

    name: str
    version: str
    pid: int
    agent: int
    folder: str
    since: float
    calls: int
    under_way: int = 0


class ProcessReport(msgspec.Struct, frozen=True):
    """A connection to a server. pid: None over HTTP. users: the ``pid`` of each client that uses it; None for
    all. requests: how many are open.
    """

    pid: int | None
    users: list[int] | None
    requests: int


class ServerReport(msgspec.Struct, frozen=True):
    """A server. state, reason: as in `mcpzip servers`. share: as in the config. calls, errors: of all
    clients.
    """

    name: str
    state: str
    reason: str
    tools: int
    share: str
    calls: int
    errors: int
    processes: list[ProcessReport]


class ProxyReport(msgspec.Struct, frozen=True):
    """Clients with the same environment, as far as the config refers to it, and their servers. notes:
    sentences about the config. uses: the SHA-256 of the content of the config that is in use, hexadecimal; ""
    if an older daemon doesn't say.
    """

    searches: int
    clients: list[ClientReport]
    servers: list[ServerReport]
    notes: list[str]
    uses: str = ""


class DaemonReport(msgspec.Struct, frozen=True):
    """A daemon. address: the URL at which it serves clients over HTTP, "" for none. idle: seconds that it
    stays without clients. successor: the version that takes over, "" for none. Times are Unix times.
    """

    pid: int
    version: str
    started_at: float
    config: str
    project: str
    address: str
    idle: float
    proxies: list[ProxyReport]
    successor: str = ""


def daemon_report(
    config: Config,
    clients: Mapping[SharedProxy, list[DaemonClient]],
    *,
    started_at: float,
    address: str,
    idle: float,
    successor: str,
) -> DaemonReport:
    """The report of this process. clients: of each proxy."""
    return DaemonReport(
        pid=os.getpid(),
        version=__version__,
        started_at=started_at,
        config=config.path,
        project=config.project,
        address=address,
        idle=idle,
        proxies=[_proxy_report(shared, its) for shared, its in clients.items()],
        successor=successor,
    )


def _proxy_report(shared: SharedProxy, clients: list[DaemonClient]) -> ProxyReport:
    proxy = shared.proxy
    counts, config = proxy.statistics.servers, proxy.config
    pids = {client.session.client: client.greeting.pid for client in clients}
    processes: dict[str, list[ProcessReport]] = {}
    for one in proxy.open_connections():
        users = None if one.users is None else sorted(pids[user] for user in one.users if user in pids)
        processes.setdefault(one.server, []).append(ProcessReport(one.pid, users, one.requests))
    return ProxyReport(
        searches=proxy.statistics.searches,
        clients=[_client_report(client) for client in sorted(clients, key=lambda one: one.since)],
        servers=[
            ServerReport(
                name=one.name,
                state=one.state,
                reason=one.reason,
                tools=one.tools,
                share=config.servers[one.name].share,
                calls=counts[one.name].calls if one.name in counts else 0,
                errors=counts[one.name].errors if one.name in counts else 0,
                processes=processes.get(one.name, []),
            )
            for one in proxy.status()
        ],
        notes=list(proxy.config_notes),
        uses=shared.uses,
    )


def _client_report(client: DaemonClient) -> ClientReport:
    greeting = client.greeting
    return ClientReport(
        *name_and_version(client.session.client.info),
        pid=greeting.pid,
        agent=greeting.agent,
        folder=greeting.folder,
        since=client.since,
        calls=client.session.calls,
        under_way=client.session.under_way,
    )
