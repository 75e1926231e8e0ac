"""The address of the HTTP server, its errors, and which clients are admitted.

By default only this machine can connect. An address that others can reach needs a token, and the names of the
hosts it is reached by. Host and Origin are checked on loopback as well, because any web page can send
requests there (spec: basic/transports/streamable-http, "Security Warning").
"""

import errno
import ipaddress
import os
import re
import socket
from collections.abc import MutableMapping, Sequence
from urllib.parse import urlsplit

import msgspec

from mcpzip.config.schema import HttpConfig
from mcpzip.model.errors import ConfigError
from mcpzip.server.http.request import PATH
from mcpzip.system.files import others_may_read, read_bytes_limited

TOKEN_VARIABLE = "MCPZIP_TOKEN"
SHORTEST_TOKEN = 16
"""Bytes: as many as 128 bits need at least; fewer can be guessed."""
LONGEST_TOKEN = 4096
"""Bytes: more would not fit among the headers of a request."""

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
LOOPBACK = "127.0.0.1"

_WRITTEN = re.compile(r"(?:(?P<host>\[[^\[\]]+\]|[^:\[\]]*):)?(?P<port>[0-9]{1,5})")
_TOKEN = re.compile(rb"[!-~]+")  # what stands in a header without ending it
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?P<port>:[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/\s*]+|(?!https?:)[a-z][a-z0-9+.-]*://[^/\s*]*", re.IGNORECASE)
_OWN_PORT = re.compile(r"(https://.+):443|(http://.+):80")


class Address(msgspec.Struct, frozen=True):
    """Where to listen. host: as it was given, without brackets; ip: what it stands for; port: 0 for any."""

    host: str
    ip: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.ip else socket.AF_INET

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.ip).is_loopback

    @property
    def is_wildcard(self) -> bool:
        return ipaddress.ip_address(self.ip).is_unspecified

    def url(self, port: int, path: str = PATH) -> str:
        """Where a client on this machine finds ``path``, once it has this port."""
        return f"http://{LOOPBACK if self.is_wildcard else _bracketed(self.ip)}:{port}{path}"


class Access(msgspec.Struct, frozen=True):
    """Which clients are admitted.

    token: the bearer token, None for none. hosts, origins: the allowed values of the headers ``Host`` and
    ``Origin``, in lower case; a value that ends in ``:*`` allows every port. pages: the origins of
    --allow-origin, which also get CORS headers, so that their web pages can read responses.
    """

    token: bytes | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    pages: tuple[str, ...] = ()

    def allows_host(self, host: str) -> bool:
        """Whether a request with this Host is for us. Names are the same in any case (RFC 9110, 4.2.3)."""
        return _is_among(host, self.hosts)

    def allows_origin(self, origin: str) -> bool:
        """Whether requests of this origin are allowed."""
        return _is_among(origin, self.origins)


def _is_among(value: str, known: tuple[str, ...]) -> bool:
    value = value.lower()
    name, _, port = value.rpartition(":")
    return value in known or (port.isascii() and port.isdecimal() and f"{name}:*" in known)


def read_address(text: str, where: str = "--http") -> Address:
    """``8931``, ``:8931``, ``HOST:8931`` or ``[::1]:8931``; without a host it is loopback. where: what errors
    name.

    Raises ConfigError.
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        remedy = f"write HOST:PORT, for example {LOOPBACK}:8931 or [::1]:8931"
        raise _wrong(where, f"{text!r} is no address", remedy)
    if int(written["port"]) > 65535:
        remedy = "choose one up to 65535, or 0 for any that is free"
        raise _wrong(where, f"there is no port {written['port']}", remedy)
    host = (written["host"] or LOOPBACK).strip("[]")
    try:
        # As bytes, a name in ASCII is not encoded by Python's IDNA codec, whose import takes 2 ms.
        found = socket.getaddrinfo(host.encode() if host.isascii() else host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _wrong(where, f"there is no host {host!r}", "write one this machine has") from error
    by_preference = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return Address(host, str(by_preference[0][4][0]), int(written["port"]))


def take(address: Address, where: str = "--http") -> socket.socket:
    """A socket that listens at ``address``. where: what errors name. Raises ConfigError when the port is
    taken or not ours to take.
    """
    try:
        listening = socket.create_server(
            (address.ip, address.port),
            family=address.family,
            dualstack_ipv6=address.is_wildcard
            and address.family == socket.AF_INET6
            and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise _not_to_be_had(address, error.errno or 0, where) from error
    # Connections inherit it. asyncio sets it only on sockets whose protocol number is set; without it each
    # message waits for the acknowledgement of the last one.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _not_to_be_had(address: Address, number: int, where: str) -> ConfigError:
    match number:
        case errno.EADDRINUSE:
            found = f"port {address.port} of {address.host} is in use"
            remedy = "end what listens there, or choose another port"
        case errno.EADDRNOTAVAIL:
            found = f"{address.host} is no address of this machine"
            remedy = f"listen on {LOOPBACK} or on one that it has"
        case errno.EACCES:
            found = f"port {address.port} needs more rights than mcpzip has"
            remedy = "choose one above 1023" if address.port < 1024 else "choose another"
        case _:
            found = f"port {address.port} of {address.host} can't be had ({os.strerror(number)})"
            remedy = "choose another"
    return _wrong(where, found, remedy)


def access_to(
    address: Address,
    token: bytes | None,
    hosts: Sequence[str],
    origins: Sequence[str],
    people: HttpConfig | None = None,
) -> Access:
    """Which clients ``address`` admits. hosts, origins: allowed besides its own. people: who may ask, if
    everybody has to say who they are. Raises ConfigError.
    """
    if people is not None and token is not None:
        raise _wrong(
            f"${TOKEN_VARIABLE} or --token-file",
            "people sign in by the http of the config, and who has a token is nobody",
            "remove the token, or give whoever has it an API key (mcpzip keys add)",
        )
    if people is not None and people.public_url:
        hosts = (*hosts, urlsplit(people.public_url).netloc)
    if token is None and people is None and not address.is_loopback:
        raise _wrong(
            "--http",
            f"{address.host} can be reached from other machines",
            f"put a token into ${TOKEN_VARIABLE} or a file for --token-file, have people sign in (http in "
            f"the config), or listen on {LOOPBACK}",
        )
    if address.is_wildcard and not hosts:
        raise _wrong(
            "--http",
            f"{address.host} stands for every address of this machine",
            "say with --allow-host by which names clients reach it",
        )
    own = LOOPBACK_NAMES if address.is_wildcard else (*LOOPBACK_NAMES, _bracketed(address.host.lower()))
    names = list(dict.fromkeys(own))
    pages = tuple(map(_origin, origins))
    return Access(
        token,
        (*_with_ports(names), *(each for host in hosts for each in _hosts(host))),
        (*_with_ports([f"http://{name}" for name in names]), *pages),
        pages,
    )


def read_token(path: str | None, environ: MutableMapping[str, str]) -> tuple[bytes | None, str | None]:
    """The token of a file, else of the environment, and what is to be warned of. Raises ConfigError.

    It is taken out of ``environ``, so that no process of ours inherits it.
    """
    from_environment = environ.pop(TOKEN_VARIABLE, None)
    if path is None:
        if from_environment is None:
            return None, None
        token = from_environment.encode("utf-8", "surrogateescape")
        return _checked(token, f"${TOKEN_VARIABLE}"), None
    try:
        token = read_bytes_limited(path, LONGEST_TOKEN + 2)
    except OSError as error:
        raise _wrong(
            path, f"it can't be read ({error.strerror})", "give --token-file a readable file"
        ) from error
    warning = f"{path} can be read by others; chmod 600 it." if others_may_read(path) else None
    return _checked(token, path), warning


def _checked(token: bytes, where: str) -> bytes:
    token = token.rstrip(b"\r\n")
    if len(token) < SHORTEST_TOKEN:
        found = f"a token of {len(token)} bytes" if token else "there is no token in it"
        remedy = f"take one of {SHORTEST_TOKEN} or more characters, such as `openssl rand -hex 32` prints"
        raise _wrong(where, found, remedy)
    if len(token) > LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise _wrong(
            where, "this token fits in no header", "use ASCII letters and digits, without spaces, on one line"
        )
    return token


def _hosts(text: str) -> list[str]:
    written = _HOST.fullmatch(text)
    if written is None:
        raise _wrong("--allow-host", f"{text!r} is no host", "write NAME or NAME:PORT, without http://")
    return [text.lower()] if written["port"] else _with_ports([text.lower()])


def _origin(text: str) -> str:
    if not _ORIGIN.fullmatch(text):
        raise _wrong("--allow-origin", f"{text!r} is no origin", "write it like https://app.example.org")
    origin = text.lower()
    written = _OWN_PORT.fullmatch(origin)
    return origin if written is None else written[1] or written[2]  # as browsers write it (RFC 6454, 6.2)


def _with_ports(names: Sequence[str]) -> list[str]:
    return [each for name in names for each in (name, f"{name}:*")]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _wrong(where: str, found: str, remedy: str) -> ConfigError:
    return ConfigError(where, "", found, remedy)
