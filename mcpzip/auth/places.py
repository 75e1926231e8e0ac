"""Where an address leads: to this machine, into its neighbourhood, or out into the world.

The rule: a server sends us only to places from which it could be reached itself: one out in the world to no
private address, one in a private network to no address of this very machine. Where the user's own config
leads counts as a place of the server. What a name means is looked at when it is connected to: by the address
that is there then, before a byte is sent.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

from mcpzip.model.errors import LoginError
from mcpzip.model.limits import RESOLVE_TIME
from mcpzip.model.quoting import shortened
from mcpzip.system.network import is_loopback

_NAT64 = IPv6Network("64:ff9b::/96")


class Zone(Enum):
    """How far away an address is; the text says where that is."""

    WORLD = "out in the world"
    NETWORK = "a private address"
    LINK = "an address of the local link"
    HERE = "on this very machine"


def zone_of(address: str) -> Zone:
    """Where the IP ``address`` is, or the one that it has in it. Raises ValueError."""
    known = _inner(ip_address(address.partition("%")[0]))
    if known.is_loopback or known.is_unspecified:
        return Zone.HERE
    if known.is_link_local:
        return Zone.LINK
    return Zone.WORLD if known.is_global and not known.is_multicast else Zone.NETWORK


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


def spelt_zone(url: str) -> Zone | None:
    """Where ``url`` leads, as far as it says it itself; None for a name."""
    if is_loopback(url):
        return Zone.HERE
    try:
        return zone_of(_host(url))
    except ValueError:
        return None


def check_place(what: str, url: str, near: Collection[str]) -> None:
    """Raises LoginError where ``url``, which a server named, is spelt as a place to which it may not send us.

    near: the URLs of the server, and what the config names.
    """
    zone = spelt_zone(url)
    if zone is None or zone is Zone.WORLD or _same_host(url, near):
        return
    known = [spelt_zone(one) for one in near]
    named = None in known and zone is not Zone.HERE  # where a name leads is seen when it is connected to
    if not named and not _may(zone, known):
        raise _refused(what, url, zone)


async def check_way(what: str, url: str, near: Collection[str]) -> None:
    """The same for whom we send a browser to: a name is looked up. What can't be found leads nowhere."""
    check_place(what, url, near)
    zones = await _zones(url)
    if zones <= {Zone.WORLD} or _same_host(url, near):
        return
    around = await _around(near)
    for zone in zones - {Zone.WORLD}:
        if not _may(zone, around):
            raise _refused(what, url, zone)


def guard(url: str, near: Collection[str]) -> Callable[[str, dict[str, Any]], Awaitable[None]]:
    """For the ``trace`` extension of a request to ``url``: ends it when it was connected to a place to which
    the server may not send us. Nothing has been sent by then.
    """

    async def look(event: str, info: dict[str, Any]) -> None:
        if event != "connection.connect_tcp.complete" or _same_host(url, near):
            return
        stream = info["return_value"]
        address = stream.get_extra_info("server_addr")
        zone = zone_of(address[0]) if isinstance(address, tuple) else Zone.WORLD
        if zone is Zone.WORLD:
            return
        try:
            if not _may(zone, await _around(near)):
                raise _refused("what it names", url, zone)
        except BaseException:
            await stream.aclose()
            raise

    return look


def _may(zone: Zone, around: Collection[Zone | None]) -> bool:
    return zone in around or Zone.HERE in around


def _refused(what: str, url: str, zone: Zone) -> LoginError:
    where = f"{what} is {shortened(url)}, which is {zone.value}"
    return LoginError(f"{where}; a server elsewhere can't send us there.")


async def _around(near: Collection[str]) -> set[Zone]:
    """Where the places of a server are. One of several addresses is no proof: all have to be there."""
    found: set[Zone] = set()
    for url in near:
        zones = await _zones(url)
        if len(zones) == 1:
            found |= zones
    return found


async def _zones(url: str) -> set[Zone]:
    """Where the addresses are to which ``url`` leads."""
    zone = spelt_zone(url)
    if zone is not None:
        return {zone}
    try:
        async with asyncio.timeout(RESOLVE_TIME):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(_host(url), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return set()
    return {zone_of(str(address[0])) for *_, address in found}


def _same_host(url: str, near: Collection[str]) -> bool:
    host = _host(url)
    return bool(host) and any(_host(one) == host for one in near)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""
