"""The last calls of tools that went through this proxy: who called what, what happened when, how it ended.

The rules:

1. So many are remembered and no more, in memory only. What a record may have, `call_record` says.
2. A record is of one request of a client, or of one call of a program, as a line of the audit log is. If a
   client comes back to a call with answers, that is a record of its own, which names the one before.
3. The tokens of a result are not counted at each call, which would take longer than all else: they are
   estimated from its size, by the tokens of an earlier result of the same tool that was about as long.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterator
from itertools import count
from time import perf_counter, time

from mcpzip.model.errors import CallRefusedError, InvalidArgumentsError
from mcpzip.model.limits import RECORDED_CALLERS, RECORDED_CALLS, RECORDED_NAME
from mcpzip.model.principal import PrincipalId
from mcpzip.model.quoting import shortened
from mcpzip.proxy.call_record import Caller, CallRecord, changes
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.input_required import is_input_required
from mcpzip.wire.client_info import name_and_version

_numbers = count(1)
_ERROR = 160
"""Characters of the sentence about an error."""
_RATIOS = 128
"""Tools, and magnitudes of their results, of which the tokens for each byte are remembered."""
_PIECE = 512
"""Bytes at the beginning, in the middle and at the end of a result whose tokens are estimated."""

Made = Awaitable[tuple[bytes, bool]]
"""The making of a call: its result, and whether that is a success."""


class CallRecords:
    """Belongs to the event loop of its proxy."""

    def __init__(self) -> None:
        self._records: deque[CallRecord] = deque(maxlen=RECORDED_CALLS)
        self._callers: dict[tuple[bytes, int, PrincipalId | None], Caller] = {}
        self._ratios: dict[tuple[str, str, int], float] = {}

    def __iter__(self) -> Iterator[CallRecord]:
        """The newest first."""
        return reversed(self._records)

    def begin(self, exchange: Exchange, server: str, tool: str, arguments: int) -> CallRecord:
        """A call begins, which is made for ``exchange``. arguments: bytes."""
        record = CallRecord(
            next(_numbers),
            next(changes),
            self._caller(exchange),
            server[:RECORDED_NAME],
            tool[:RECORDED_NAME],
            time(),
            perf_counter(),
            arguments,
            exchange.parent,
        )
        self._records.append(record)
        exchange.record = record
        return record

    async def recorded(self, record: CallRecord, made: Made) -> tuple[bytes, bool]:
        """What ``made`` gives; how it ended is recorded."""
        try:
            result, succeeded = await made
        except BaseException as error:
            self.failed(record, error)
            raise
        record.result = len(result)
        record.tokens = self._tokens(record, result)
        self._end(record, outcome_of(result, succeeded))
        return result, succeeded

    def failed(self, record: CallRecord, error: BaseException) -> None:
        """The call of ``record`` has no result."""
        # What is wrong with arguments quotes them.
        if not isinstance(error, asyncio.CancelledError | InvalidArgumentsError):
            record.error = shortened(str(error), _ERROR)
        self._end(record, outcome_of_error(error))

    def kept(self, record: CallRecord | None) -> None:
        """Its client is not sent all of its result, which is kept."""
        if record is not None:
            record.kept, record.change = True, next(changes)

    def _end(self, record: CallRecord, outcome: str) -> None:
        record.seconds = perf_counter() - record.began
        record.outcome = record.outcome or outcome
        record.change = next(changes)

    def _caller(self, exchange: Exchange) -> Caller:
        client, principal = exchange.client, exchange.principal
        key = client.info, client.pid, None if principal is None else principal.id
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= RECORDED_CALLERS:
                self._callers.clear()
            caller = self._callers[key] = Caller(*name_and_version(client.info), *key[1:])
        return caller

    def _tokens(self, record: CallRecord, result: bytes) -> int:
        """Those of ``result``, about."""
        key = record.server, record.tool, len(result).bit_length()
        ratio = self._ratios.get(key)
        if ratio is None:
            if len(self._ratios) >= _RATIOS:
                self._ratios.clear()
            ratio = self._ratios[key] = _tokens_per_byte(result)
        return round(len(result) * ratio)


def outcome_of(result: bytes, succeeded: bool) -> str:
    """The outcome of a call with this ``result``, in the words of the audit log."""
    return "result" if succeeded else "input required" if is_input_required(result) else "tool error"


def outcome_of_error(error: BaseException) -> str:
    """The outcome of a call that ended with ``error``, in the words of the audit log."""
    if isinstance(error, CallRefusedError):
        return error.outcome
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "no result"


def _tokens_per_byte(result: bytes) -> float:
    from mcpzip.model.tokens import estimate  # not before there is a result

    if len(result) > 3 * _PIECE:
        middle = (len(result) - _PIECE) // 2
        result = result[:_PIECE] + result[middle : middle + _PIECE] + result[-_PIECE:]
    return estimate(result.decode("utf-8", "replace")) / max(len(result), 1)
