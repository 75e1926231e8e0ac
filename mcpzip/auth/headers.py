"""Headers that a program prints: ``headersCommand``.

The program is started without a shell, with our environment and ``MCPZIP_SERVER_NAME`` and
``MCPZIP_SERVER_URL``. It prints one JSON object, of headers or with them in it:

    {"Authorization": "Bearer …"}
    {"headers": {"Authorization": "Bearer …"}, "expires_in": 3600}       seconds from now
    {"headers": {"Authorization": "Bearer …"}, "expires_at": 1767225600}  Unix seconds

The rules: one run at a time, however many requests wait for it; what it printed is used until it expires,
and goes to the server's own origin only; a request that is refused with 401 is sent once more with new
headers, unless new ones were refused a moment ago. Nothing it prints is shown but the last line of its
stderr, without what looks like credentials.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass

import httpx
import msgspec

from mcpzip.config.schema import ServerConfig
from mcpzip.config.server import HEADER_NAME
from mcpzip.model.error_line import error_line
from mcpzip.model.errors import LoginError
from mcpzip.model.redaction import redact, register_header
from mcpzip.system.pipes import read_from
from mcpzip.system.process import Child

TIMEOUT = 10.0
"""Seconds the program may take."""
LASTS = 300.0
"""Seconds its headers are used when it doesn't say."""
EARLY = 10.0
"""Seconds before they expire, but never more than a tenth of their time, new ones are had."""
REST = 60.0
"""Seconds without another run after new headers were refused too."""

MOST_OUT, MOST_ERR = 1 << 20, 1 << 16
"""Bytes of its output, and of the end of its stderr, that are taken."""
_SHOWN = 300  # characters of its last words
_DRAIN = 0.2  # s its output is waited for when it has ended and what it started keeps the pipe open

_VALUE = re.compile(r"[\t -~]*")
_NOT_THEIRS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""Of the message's framing, which isn't the program's (RFC 9110, 7.2, 7.6.1, 8.6)."""
_CREDENTIALS = re.compile(
    r"\b(bearer|basic)(\s+)[^\s\"']+"
    r"|\b(\w*(?:token|secret|password|key))([\"']?\s*[=:]\s*[\"']?)[^\s\"',}]+",
    re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Printed:
    """headers: as printed. until: Unix s; from then on they are not used."""

    headers: Mapping[str, str]
    until: float


class HeadersCommand(httpx.Auth):
    """Adds to each request the headers that the ``headersCommand`` of ``server`` prints.

    A request raises LoginError when there are none.
    """

    def __init__(
        self,
        server: ServerConfig,
        environment: Mapping[str, str] = os.environ,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """environment: of the program. now: Unix s."""
        self.server, self._environment, self._now = server, environment, now
        self._origin = _origin(httpx.URL(server.url))
        self._printed: Printed | None = None
        self._run: asyncio.Task[Printed] | None = None
        self._refused_at = -REST

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if _origin(request.url) != self._origin:
            yield request
            return
        used = await self._current()
        request.headers.update(used.headers)
        response = yield request
        if response.status_code != 401 or self._now() - self._refused_at < REST:
            return
        if self._printed is used:
            self._printed = None
        anew = await self._current()
        if anew.headers == used.headers:
            self._refused_at = self._now()
            return
        request.headers.update(anew.headers)
        response = yield request
        if response.status_code == 401:
            self._refused_at = self._now()

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        raise RuntimeError("headersCommand is for asynchronous clients")

    async def _current(self) -> Printed:
        printed = self._printed
        if printed is not None and self._now() < printed.until:
            return printed
        if self._run is None:
            self._run = asyncio.create_task(self._renew(), name=f"headers-{self.server.name}")
            self._run.add_done_callback(self._ended)
        return await asyncio.shield(self._run)

    async def _renew(self) -> Printed:
        command = self.server.headers_command
        own = {"MCPZIP_SERVER_NAME": self.server.name, "MCPZIP_SERVER_URL": self.server.url}
        out = await _output(command, {**self._environment, **own})
        self._printed = read_printed(out, self._now())
        for name, value in self._printed.headers.items():
            register_header(name, value)
        return self._printed

    def _ended(self, run: "asyncio.Task[Printed]") -> None:
        self._run = None
        if not run.cancelled():
            run.exception()  # whoever waited has it; nobody may have


def read_printed(out: bytes, now: float) -> Printed:
    """What the program's output says at ``now`` (Unix s). Raises LoginError, which quotes nothing of it but
    the name of a header.
    """
    try:
        found = msgspec.json.decode(out)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _error("printed no JSON object", 'It has to print one of headers, such as {"X-Key": "…"}')
    inner, until = found.get("headers"), now + LASTS
    if isinstance(inner, dict):
        lasts = _seconds(found, "expires_in")
        ends = now + lasts if lasts is not None else _seconds(found, "expires_at")
        if ends is not None:
            until = ends - min(EARLY, max(ends - now, 0.0) / 10)
        found = inner
    for name, value in found.items():
        if not isinstance(value, str):
            raise _error(f"printed {_named(name)} that is no string", "Put it in double quotes")
        if not HEADER_NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise _error(f"printed {_named(name)} that can't be one", "Use one line of printable ASCII")
        if name.lower() in _NOT_THEIRS:
            raise _error(f"printed {_named(name)}, which is part of the message itself", "Leave it out")
    return Printed(found, until)


def _seconds(found: Mapping[str, object], key: str) -> float | None:
    value = found.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise _error(
            f'printed an "{key}" that is no number of seconds', "Write it without quotes, in seconds"
        )
    return float(value)


def _named(name: str) -> str:
    return f"a header {name!r}" if HEADER_NAME.fullmatch(name) and len(name) <= 40 else "a header"


async def _output(command: tuple[str, ...], env: Mapping[str, str]) -> bytes:
    """What ``command`` prints. It, and what it started, is gone afterwards. Raises LoginError."""
    try:
        child = Child(command, env, None)
    except OSError as error:
        why = (
            "was not found"
            if isinstance(error, FileNotFoundError)
            else f"can't be started ({error.strerror})"
        )
        raise _error(f"{why}: {command[0]!r}", "Install it, or fix it in the config") from error
    child.close_stdin()
    out, err, streams, ended = bytearray(), bytearray(), {"out", "err"}, asyncio.Event()

    def printed(data: bytes) -> None:
        if len(out) <= MOST_OUT:
            out.extend(data)

    def complained(data: bytes) -> None:
        err.extend(data)
        del err[:-MOST_ERR]

    def closed(stream: str) -> None:
        streams.discard(stream)
        if not streams:
            ended.set()

    readers = (
        read_from(child.stdout, printed, lambda: closed("out")),
        read_from(child.stderr, complained, lambda: closed("err")),
    )
    try:
        if not await child.exits_within(TIMEOUT):
            raise _error(f"did not end within {TIMEOUT:.0f} s{_last_words(err)}", _BY_HAND)
        try:
            await asyncio.wait_for(ended.wait(), _DRAIN)
        except TimeoutError:
            pass
        code = child.exit_code
    finally:
        for reader in readers:
            reader.close()
        child.kill()
    if len(out) > MOST_OUT:
        raise _error(f"printed more than {MOST_OUT:,} bytes", "It has to print one JSON object of headers")
    if code:
        how = f"exited with code {code}" if code > 0 else f"ended on signal {-code}"
        raise _error(how + _last_words(err), _BY_HAND)
    return bytes(out)


def _last_words(err: bytearray) -> str:
    said = error_line(err.decode("utf-8", "replace").splitlines())
    if not said:
        return ""
    shown = _CREDENTIALS.sub(lambda found: "".join(each or "" for each in found.groups()) + "…", redact(said))
    return f": {shown[:_SHOWN]}"


_BY_HAND = "Run it by hand to see what is wrong with it"


def _error(what: str, remedy: str) -> LoginError:
    return LoginError(f"its headersCommand {what}. {remedy}.")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)
