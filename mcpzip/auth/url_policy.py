"""To which URLs a server may send us (against server-side request forgery).

The rule: a server at a public address may name no private address, and one in a private network no address of
this very machine. Addresses that the user's own config names count as the server's. A host name is checked
when it is connected to, by the address that it then has, before a byte is sent.
"""

import asyncio
import socket
from collections.abc import Collection
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

from mcpzip.http.connections import CheckPeer
from mcpzip.model.errors import LoginError
from mcpzip.model.limits import RESOLVE_TIME
from mcpzip.model.quoting import shortened
from mcpzip.system.network import is_loopback

_NAT64 = IPv6Network("64:ff9b::/96")


class Zone(Enum):
    """From where an address can be reached; the text goes into sentences."""

    PUBLIC = "a public address"
    PRIVATE = "a private address"
    LINK_LOCAL = "an address of the local link"
    LOOPBACK = "on this very machine"


def zone_of(address: str) -> Zone:
    """The zone of the IP ``address``, or of the one that is embedded in it. Raises ValueError."""
    known = _inner(ip_address(address.partition("%")[0]))
    if known.is_loopback or known.is_unspecified:
        return Zone.LOOPBACK
    if known.is_link_local:
        return Zone.LINK_LOCAL
    return Zone.PUBLIC if known.is_global and not known.is_multicast else Zone.PRIVATE


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


def literal_zone(url: str) -> Zone | None:
    """The zone of the address in ``url``; None for a host name."""
    if is_loopback(url):
        return Zone.LOOPBACK
    try:
        return zone_of(_host(url))
    except ValueError:
        return None


def check_url(what: str, url: str, server_urls: Collection[str]) -> None:
    """Raises LoginError if ``url``, which a server named, has an address to which it may not send us.

    server_urls: the URL of the server, and those that the config names for it.
    """
    zone = literal_zone(url)
    if zone is None or zone is Zone.PUBLIC or _same_host(url, server_urls):
        return
    known = [literal_zone(one) for one in server_urls]
    named = None in known and zone is not Zone.LOOPBACK  # where a name leads is seen when it is connected to
    if not named and not _may(zone, known):
        raise _refused(what, url, zone)


async def check_resolved_url(what: str, url: str, server_urls: Collection[str]) -> None:
    """The same for a URL that a browser opens: its host name is looked up; one without addresses will do."""
    check_url(what, url, server_urls)
    zones = await _zones(url)
    if zones <= {Zone.PUBLIC} or _same_host(url, server_urls):
        return
    around = await _around(server_urls)
    for zone in zones - {Zone.PUBLIC}:
        if not _may(zone, around):
            raise _refused(what, url, zone)


def peer_check(url: str, server_urls: Collection[str]) -> CheckPeer:
    """For a request to ``url``: raises LoginError if the server may not send us to its address."""

    async def check(address: Any) -> None:
        if _same_host(url, server_urls):
            return
        zone = zone_of(address[0]) if isinstance(address, tuple) else Zone.PUBLIC
        if zone is not Zone.PUBLIC and not _may(zone, await _around(server_urls)):
            raise _refused("what it names", url, zone)

    return check


def _may(zone: Zone, around: Collection[Zone | None]) -> bool:
    return zone in around or Zone.LOOPBACK in around


def _refused(what: str, url: str, zone: Zone) -> LoginError:
    where = f"{what} is {shortened(url)}, which is {zone.value}"
    return LoginError(f"{where}; a server elsewhere can't send us there.")


async def _around(server_urls: Collection[str]) -> set[Zone]:
    """The zones of a server. A name whose addresses are in several zones counts for none."""
    found: set[Zone] = set()
    for url in server_urls:
        zones = await _zones(url)
        if len(zones) == 1:
            found |= zones
    return found


async def _zones(url: str) -> set[Zone]:
    """The zones of all addresses of ``url``."""
    zone = literal_zone(url)
    if zone is not None:
        return {zone}
    try:
        async with asyncio.timeout(RESOLVE_TIME):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(_host(url), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return set()
    return {zone_of(str(address[0])) for *_, address in found}


def _same_host(url: str, server_urls: Collection[str]) -> bool:
    host = _host(url)
    return bool(host) and any(_host(one) == host for one in server_urls)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""
