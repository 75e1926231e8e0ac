"""The network settings of this machine: trusted certificates, proxies, loopback addresses."""

import logging
import os
import select
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from mcpzip.system.lean_imports import allow_tls

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Host names of this machine."""


# These libraries log tracebacks to stderr, which may contain secrets. Our own errors report what matters.
for _name in ("mcp", "httpx", "httpcore"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False

allow_tls()

_SETTINGS = {"darwin": "macosx_sysconf", "win32": "registry"}
"""What `urllib.request` calls a system's proxy settings."""
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_context(environment: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """A client context that trusts the certificates of the operating system, or of ``SSL_CERT_FILE`` and
    ``SSL_CERT_DIR`` in ``environment``. Made once for each value of these, because that takes long and its
    memory is not freed.
    """
    file, folder = map(environment.get, _CERTIFICATES)
    return _tls_context(file or "", folder or "")


@lru_cache(maxsize=16)
def _tls_context(file: str, folder: str) -> ssl.SSLContext:
    if sys.platform in ("win32", "darwin") and not (file or folder):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()  # of which those in the environment are this process's
    file, folder = file or paths.openssl_cafile, folder or paths.openssl_capath
    try:
        context = ssl.create_default_context(cafile=file if os.path.isfile(file) else None, capath=folder)
    except ssl.SSLError:  # there is no certificate in the file
        context = ssl.create_default_context(capath=folder)
    if not context.cert_store_stats()["x509_ca"] and not os.path.isdir(folder):  # a bare container
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def environment_proxy(url: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The proxy for ``url`` by ``HTTP_PROXY``, ``HTTPS_PROXY`` or ``ALL_PROXY`` in ``environment`` (on macOS
    and Windows without any of them by the system's settings). None if ``NO_PROXY`` excludes its host, or the
    host is this machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK:
        return None
    proxies = _proxies(environment)
    if not proxies:
        proxies = _system_proxies(host)
    elif proxy_bypass_environment(host, proxies):
        return None
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The proxies that ``environment`` sets, by scheme: as `urllib.request.getproxies_environment`, which
    knows only this process. A name in lower case wins.
    """
    found = {name.lower()[:-6]: environment[name] for name in environment if name.lower().endswith("_proxy")}
    if "REQUEST_METHOD" in environment:  # a web server gives it the header "Proxy" (CVE-2016-1000110)
        found.pop("http", None)
    found |= {name[:-6].lower(): environment[name] for name in environment if name.endswith("_proxy")}
    return {scheme: proxy for scheme, proxy in found.items() if proxy}


def _system_proxies(host: str) -> dict[str, str]:
    """The proxies that the settings of macOS or Windows name for ``host``, by scheme."""
    settings = _SETTINGS.get(sys.platform)
    if settings is None or getattr(urllib.request, f"proxy_bypass_{settings}")(host):
        return {}
    found: dict[str, str] = getattr(urllib.request, f"getproxies_{settings}")()
    return found


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
