"""What it costs to remember calls: ``python -m bench.recorded_calls``.

Processor time, so that other processes on the machine disturb little; without that of the call itself.
"""

import asyncio
import gc
import time
import tracemalloc

from mcpzip.proxy.call_record import ANSWERED, CONNECTING, SENT, CallRecord
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.exchange import Client, Exchange

CALLS, ROUNDS = 20_000, 7
RESULT = b'{"content":[{"type":"text","text":"It is 14:05 in Berlin, a quiet afternoon."}]}'
CLIENT = Client(info=b'{"name":"claude-code","version":"2.1.0"}', pid=4242)


async def plain(padding: int) -> tuple[bytes, bool]:
    """A call."""
    return RESULT + b" " * padding, True


async def noted(record: CallRecord, padding: int) -> tuple[bytes, bool]:
    """The same, with what happens to a usual one."""
    record.note(CONNECTING)
    record.note(SENT)
    record.note(ANSWERED)
    return RESULT + b" " * padding, True


async def recorded(calls: CallRecords, exchange: Exchange, padding: int = 0) -> None:
    """A call that is remembered."""
    record = calls.begin(exchange, "time", "get_current_time", 31 + padding)
    await calls.recorded(record, noted(record, padding))


async def seconds() -> float:
    """Of processor time for one call, the median of some rounds."""
    calls, exchange, found = CallRecords(), Exchange(CLIENT), []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            await plain(0)
        between = time.process_time()
        for _ in range(CALLS):
            await recorded(calls, exchange)
        found.append(time.process_time() - between - (between - begin))
    return sorted(found)[ROUNDS // 2] / CALLS


def size() -> int:
    """Bytes of all that is remembered, once nothing more is."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    calls = CallRecords()

    async def fill() -> None:
        for number in range(5_000):
            await recorded(calls, Exchange(CLIENT), number)

    asyncio.run(fill())
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


if __name__ == "__main__":
    print(f"a call: {asyncio.run(seconds()) * 1e6:.2f} µs of processor time")
    print(f"a thousand calls: {size() / 1e6:.2f} MB")
