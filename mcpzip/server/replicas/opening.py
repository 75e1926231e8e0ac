"""Makes a process one of several replicas, as its config says."""

import secrets
import socket
from collections.abc import Callable

from mcpzip.config.schema import ReplicasConfig
from mcpzip.model.errors import ConfigError
from mcpzip.proxy.kept_results import Results
from mcpzip.server.http.access import read_address, take
from mcpzip.server.http.application_server import ApplicationServer
from mcpzip.server.http.limits import LIMITS
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse
from mcpzip.server.replicas.forwarding import Forwarder
from mcpzip.server.replicas.listener import Listener
from mcpzip.server.replicas.replica import Replica
from mcpzip.system.sealing import KeyRing, SealingMissingError, read_key

_INSTALL = 'install it: pip install "mcpzip[team]"'


class Replicas:
    """This process among its replicas. forwarder: sends requests to others. address: where others send them,
    "" for nowhere.
    """

    def __init__(self, config: ReplicasConfig, path: str) -> None:
        """Listens at the private address. path: of the config file. Raises ConfigError."""
        try:
            ring = KeyRing([read_key(each.reveal()) for each in config.keys])
        except SealingMissingError:
            found = "sealing sessions needs the package cryptography"
            raise ConfigError(path, "replicas", found, _INSTALL) from None
        self._listening: socket.socket | None = None
        self._listener: Listener | None = None
        self._server: ApplicationServer | None = None
        self.address = ""
        if config.listen:
            at = read_address(config.listen, "replicas.listen")
            host, _, port = _split(config.address, path)
            if at.is_wildcard and not host:
                raise ConfigError(
                    path,
                    "replicas.listen",
                    f"{at.host} stands for every address of this machine",
                    'write by which one other replicas reach it, such as "address": "${POD_IP}"',
                )
            self._listening = take(at, "replicas.listen")
            usual = f"[{at.ip}]" if ":" in at.ip else at.ip
            self.address = f"{host or usual}:{port or self._listening.getsockname()[1]}"
        self.forwarder = Forwarder(Replica(ring, self.address, config.drain))

    async def start(
        self, handle: Callable[[HttpRequest, HttpResponse], None], warn: Callable[[str], None]
    ) -> None:
        """Begins to take requests of others. handle: answers one that was let in."""
        if self._listening is not None:
            self._listener = Listener(self.forwarder.replica, handle, warn)
            self._server = ApplicationServer(self._listener, self._listening, LIMITS)
            await self._server.start()

    def name_handles(self, results: Results) -> None:
        """From now on the handles of kept results and paused programs say at which replica these are."""
        replica = self.forwarder.replica
        if replica.owner.address:
            results.new_suffix = lambda client: replica.handle_suffix(client.principal)
            # Models call results by their number alone, too, which must not mean one of another replica.
            results.first_number = secrets.randbelow(900_000) + 100_001

    def end(self) -> None:
        """From now on nothing new is taken."""
        if self._listener is not None:
            self._listener.ending = True

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            await self._server.close()
        if self._listening is not None:
            self._listening.close()


def _split(address: str, path: str) -> tuple[str, str, str]:
    """Host, colon and port of an address; without a port, the whole is the host. Raises ConfigError."""
    host, colon, port = (
        address.rpartition(":") if address.count(":") == 1 or "]:" in address else (address, "", "")
    )
    if colon and not (host and port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        remedy = "write HOST or HOST:PORT, such as 10.0.0.7:8940 or [fd00::7]:8940"
        raise ConfigError(path, "replicas.address", f"{address!r} is no address", remedy)
    return f"[{host}]" if ":" in host and not host.startswith("[") else host, colon, port
