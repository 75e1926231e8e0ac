"""What an open page is told."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from mcpzip.server.http.response import HttpResponse
from mcpzip.ui.changes import Changes
from mcpzip.ui.sources import Processes, Sources


class _Faulty(Sources):
    """Has a defect from the second time on that it is asked."""

    def __init__(self, asked: Callable[[], None]) -> None:
        super().__init__("/nothing/config.json", "", lambda _: None)
        self._asked, self._first = asked, True

    async def processes(self, *, memory: bool = True) -> Processes:
        self._asked()
        if self._first:
            self._first = False
            return Processes(None, (), ())
        raise ValueError("a report of another version")

    async def _current(self) -> NoReturn:
        raise ValueError("a defect")


class _Channel:
    """A connection that keeps what is sent."""

    writable, mid_body = True, False

    def __init__(self) -> None:
        self.sent = b""

    def start(self, status: int, headers: object, body: bytes, *, more: bool) -> None:
        self.write(body, more=more)

    def write(self, body: bytes, *, more: bool) -> None:
        self.sent += body

    def hold_back(self, size: int) -> None: ...

    def failed(self, defect: Exception) -> None:
        raise defect


def test_a_defect_is_a_change_and_ends_no_stream() -> None:
    async def check() -> None:
        times = 0
        again = asyncio.Event()

        def asked() -> None:
            nonlocal times
            times += 1
            if times > 3:
                again.set()

        changes, channel = Changes(_Faulty(asked), 0.001), _Channel()
        changes.tell(HttpResponse(channel))
        await asyncio.wait_for(again.wait(), 30)
        late = _Channel()
        changes.tell(HttpResponse(late))
        assert late.sent.count(b"changed") == 1
        await changes.close()
        assert channel.sent.count(b"changed") == 2  # what there was, and the defect

    asyncio.run(check())
