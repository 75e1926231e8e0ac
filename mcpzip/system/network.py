"""What this machine says of the network: the certificates it trusts, and the proxies to go through."""

import logging
import ssl
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""The names of this very machine."""


# These libraries print tracebacks to our stderr, which may hold what nobody should see; what matters is told
# through errors.
for _name in ("mcp", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


@cache
def tls() -> ssl.SSLContext:
    """What certificates are trusted. Made once: it takes long, and memory for good."""
    return httpx2.create_ssl_context()


def environment_proxy(url: str) -> str | None:
    """The proxy that ``HTTP_PROXY``, ``HTTPS_PROXY`` or ``ALL_PROXY`` names for ``url``, unless ``NO_PROXY``
    does.

    Never one for this very machine.
    """
    asked = httpx2.URL(url)
    if asked.host in LOOPBACK or proxy_bypass(asked.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(asked.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def is_private_way(url: str) -> bool:
    """Whether nobody can listen on the way to ``url``: TLS, or this very machine."""
    return url[:6].lower() == "https:" or on_this_machine(url)


def on_this_machine(url: str) -> bool:
    """Whether ``url`` leads to the loopback interface."""
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False  # it leads nowhere
    if host in LOOPBACK or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False  # a name, and "127.evil.example" is one
    inner = getattr(address, "ipv4_mapped", None) or address
    return bool(inner.is_loopback or inner.is_unspecified)
