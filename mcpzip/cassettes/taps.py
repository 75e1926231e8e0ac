"""What records one HTTP request and its response while they pass."""

from collections.abc import AsyncIterator, Callable

from mcpzip.cassettes.http_observer import HttpObserver
from mcpzip.cassettes.tape import Tape

Headers = list[tuple[str, str]]
Relocate = Callable[[str], str]
"""Makes a URL of the server one of the recorder."""


class Tap:
    """Records one request and its response; this one does nothing."""

    def began(self) -> None:
        """The request is sent."""

    def responded(self, status: int, headers: Headers) -> None:
        """The head of the response came."""

    async def passing(self, parts: AsyncIterator[bytes], relocate: Relocate) -> AsyncIterator[bytes]:
        """The parts of the body, which are passed on."""
        async for part in parts:
            yield part

    def ended(self, *, cut: bool = False, left: bool = False) -> None:
        """The response ended."""


class HttpTap(Tap):
    """Records a request of Streamable HTTP."""

    def __init__(
        self, tape: Tape, observer: HttpObserver, key: int, verb: str, headers: Headers, body: bytes
    ) -> None:
        self._tape, self._observer, self._key = tape, observer, key
        self._verb, self._headers, self._body = verb, headers, body
        self._over = False

    def began(self) -> None:
        size = len(self._body)
        self._tape.note(self._observer.began, self._key, self._verb, self._headers, self._body, size=size)

    def responded(self, status: int, headers: Headers) -> None:
        self._tape.note(self._observer.responded, self._key, status, headers)

    async def passing(self, parts: AsyncIterator[bytes], relocate: Relocate) -> AsyncIterator[bytes]:
        async for part in parts:
            self._tape.note(self._observer.received, self._key, part, size=len(part))
            yield part

    def ended(self, *, cut: bool = False, left: bool = False) -> None:
        if not self._over:
            self._over = True
            self._tape.note(_ended, self._observer, self._key, cut, left)


def _ended(observer: HttpObserver, key: int, cut: bool, left: bool, at: float) -> None:
    observer.ended(key, at, cut=cut, left=left)
