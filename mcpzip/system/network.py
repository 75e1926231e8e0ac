"""The network settings of this machine: trusted certificates, proxies, loopback addresses."""

import logging
import os
import select
import ssl
import sys
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mcpzip.system.lean_imports import allow_tls

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Host names of this machine."""


# These libraries log tracebacks to stderr, which may contain secrets. Our own errors report what matters.
for _name in ("mcp", "httpx", "httpcore"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False

allow_tls()

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@cache
def tls_context() -> ssl.SSLContext:
    """A client context that trusts the certificates of the operating system, or of ``SSL_CERT_FILE`` and
    ``SSL_CERT_DIR``. Made once per process, because that takes long and its memory is not freed.
    """
    if sys.platform in ("win32", "darwin") and not any(map(os.environ.get, _CERTIFICATES)):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not context.cert_store_stats()["x509_ca"] and not paths.capath:  # a container without certificates
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def environment_proxy(url: str) -> str | None:
    """The proxy for ``url`` by ``HTTP_PROXY``, ``HTTPS_PROXY`` or ``ALL_PROXY`` (on macOS and Windows also by
    the system's settings). None if ``NO_PROXY`` excludes its host, or the host is this machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def is_socket_readable(fd: int) -> bool:
    """Whether the socket ``fd`` has data or was closed by the peer. Windows has ``select`` only, which on
    POSIX can't watch descriptors above 1,023.
    """
    if sys.platform == "win32":
        return bool(select.select([fd], (), (), 0)[0])
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def is_confidential(url: str) -> bool:
    """Whether requests to ``url`` can't be read on the network: it is https, or on this machine."""
    return url[:6].lower() == "https:" or is_loopback(url)


def is_loopback(url: str) -> bool:
    """Whether the host of ``url`` is this machine: a loopback or unspecified address, or such a name."""
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False
    if host in LOOPBACK or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False  # a host name, such as "127.evil.example"
    inner = getattr(address, "ipv4_mapped", None) or address
    return bool(inner.is_loopback or inner.is_unspecified)
