"""What an open page is told."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from helpers.sent_channel import SentChannel

from mcpzip.server.http.response import HttpResponse
from mcpzip.ui.changes import Changes, digest_of, stream_budget
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


def test_a_defect_is_a_change_and_ends_no_stream() -> None:
    async def check() -> None:
        times = 0
        again = asyncio.Event()

        def asked() -> None:
            nonlocal times
            times += 1
            if times > 3:
                again.set()

        sources = _Faulty(asked)
        changes, channel = Changes(lambda: digest_of(sources), stream_budget(), 0.001), SentChannel()
        changes.tell(HttpResponse(channel))
        await asyncio.wait_for(again.wait(), 30)
        late = SentChannel()
        changes.tell(HttpResponse(late))
        assert late.sent.count(b"changed") == 1
        await changes.close()
        assert channel.sent.count(b"changed") == 2  # what there was, and the defect

    asyncio.run(check())
