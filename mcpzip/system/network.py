"""What this machine says of the network: the certificates it trusts, and the proxies to go through."""

import logging
import os
import ssl
import sys
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""The names of this very machine."""


# These libraries print tracebacks to our stderr, which may hold what nobody should see; what matters is told
# through errors.
for _name in ("mcp", "httpx", "httpcore"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@cache
def tls() -> ssl.SSLContext:
    """Which certificates are trusted: those of the operating system, or of ``SSL_CERT_FILE`` and
    ``SSL_CERT_DIR``. Made once: it takes long, and memory for good.
    """
    if sys.platform in ("win32", "darwin") and not any(map(os.environ.get, _CERTIFICATES)):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not context.cert_store_stats()["x509_ca"] and not paths.capath:  # a container with no certificates
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def environment_proxy(url: str) -> str | None:
    """The proxy that ``HTTP_PROXY``, ``HTTPS_PROXY`` or ``ALL_PROXY`` names for ``url``, unless ``NO_PROXY``
    does.

    Never one for this very machine.
    """
    asked = urlsplit(url)
    host = asked.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(asked.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def is_confidential(url: str) -> bool:
    """Whether nobody can listen on the way to ``url``: TLS, or this very machine."""
    return url[:6].lower() == "https:" or is_loopback(url)


def is_loopback(url: str) -> bool:
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
