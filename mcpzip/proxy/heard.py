"""What servers say while they are called: texts of errors, and questions. Orders and hidden text are noted.

The rules:

1. Nothing is held back or changed, and nothing waits for this: a thread looks at the texts.
2. What is found is noted in the log once, in the audit log beside its call, and counted for `mcpzip status`.
3. So many texts wait and no more, and so much of each is looked at (`model.limits`). A successful result
   isn't looked at.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcpzip.model.limits import CHECKED_SAID, SAID_NOTED, SAID_WAITING
from mcpzip.model.quoting import one_line
from mcpzip.proxy.exchange import Exchange, Said, members
from mcpzip.system.event_log import Level, note
from mcpzip.system.threads import in_thread
from mcpzip.system.write_queue import WriteQueue
from mcpzip.wire import RpcError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpzip.checks import Finding
    from mcpzip.checks.said import What

EVENT = "suspect text"
"""Of the log's entries."""
CLOSING = 0.2
"""Seconds that the last texts have."""
_QUESTIONS: "Mapping[str, What]" = {"elicitation/create": "question", "sampling/createMessage": "sampling"}


def findings(said: Said) -> "Sequence[Finding]":
    """What is odd about ``said``, the worst first. For a thread: the checks take long to import."""
    if said.found is None:
        from mcpzip.checks.said import found_in

        said.found = found_in(said.text, said.what, said.tool)
    return said.found


def checks_of(said: "Sequence[Said]") -> tuple[str, ...]:
    """The checks that find something in ``said``. For a thread."""
    return tuple(sorted({one.check for each in said for one in findings(each)}))


_WORDS = {"error": "an error", "question": "a question to the user", "sampling": "a question to the model"}


def described(said: Said, one: "Finding") -> str:
    """A finding on one line."""
    tool = f" of the tool {one_line(said.tool)[:100]}" if said.tool else ""
    return f"{_WORDS[said.what]}{tool} {one.meaning}: “{one.excerpt}” [{one.check}]"


class Heard:
    """What the servers of one proxy said. Methods are for the event loop."""

    def __init__(self) -> None:
        self._queue: WriteQueue[Said] = WriteQueue("texts", SAID_WAITING, self._look)
        self._noted: dict[str, set[tuple[str, str]]] = {}
        """By server: the checks that found something, and the excerpts."""

    def suspect(self, server: str) -> int:
        """How many different findings there are in what ``server`` said, at most `SAID_NOTED`."""
        return len(self._noted.get(server, ()))

    def failed(self, exchange: Exchange, server: str, tool: str, result: bytes) -> None:
        """The result of a call is an error. tool: its name; result: JSON text."""
        self._add(exchange, server, tool, "error", result)

    def refused(self, exchange: Exchange | None, server: str, tool: str, error: RpcError) -> None:
        """``server`` answered a request with ``error``. tool: that was called, "" for another request."""
        message, data = quote(error.message[:CHECKED_SAID]), (error.data or b"")[:CHECKED_SAID]
        self._add(exchange, server, tool, "error", b"[%b,%b" % (message, data))

    def asked(self, exchange: Exchange | None, server: str, method: str, params: bytes | None) -> None:
        """``server`` asks something. exchange: the request during which, as far as that is known."""
        what = _QUESTIONS.get(method)
        if what is not None:
            self._add(exchange, server, "", what, params or b"{}")

    def asked_by_result(self, exchange: Exchange, server: str, result: bytes) -> None:
        """``server`` asks what is in the `inputRequests` of ``result``."""
        for question in list(members(members(result).get("inputRequests")).values())[:SAID_WAITING]:
            fields = members(question)
            method = fields.get("method", b"").strip(b'"').decode("ascii", "replace")
            self.asked(exchange, server, method, fields.get("params"))

    def _add(self, exchange: Exchange | None, server: str, tool: str, what: "What", text: bytes) -> None:
        said = Said(server, tool, what, text[:CHECKED_SAID])
        if exchange is not None:
            exchange.said.append(said)
        self._queue.put(said)

    async def close(self) -> None:
        """Looks at what is left."""
        await in_thread(lambda: self._queue.close(CLOSING), "texts")

    # --- in the thread

    def _look(self) -> None:
        said = self._queue.items.popleft()
        for one in findings(said):
            known = self._noted.setdefault(said.server, set())
            key = one.check, one.excerpt
            if key not in known and len(known) < SAID_NOTED:
                known.add(key)
                level: Level = "warning" if one.severity == "hard" else "info"
                note(level, said.server, EVENT, described(said, one))
