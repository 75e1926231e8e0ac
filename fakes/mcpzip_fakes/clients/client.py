"""One client: its requests, its answers to questions, and all that it received.

The rule: nothing that comes is lost or judged. Every message is in ``received``, decoded, in its order.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count

import msgspec

from mcpzip.wire import METHOD_NOT_FOUND
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.clients.channel import Channel
from mcpzip_fakes.clients.identity import Identity
from mcpzip_fakes.clients.pending import ConnectionEnded, ErrorAnswer, Pending
from mcpzip_fakes.request import as_object


class Reply(dict[str, object]):
    """The result of a request. text: of its first text block, "" without one."""

    @property
    def text(self) -> str:
        blocks = self.get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("type") == "text":
                return str(block.get("text", ""))
        return ""


class Client:
    """One client. identity; name: of the identity; opening: the result of ``initialize``, once it is there;
    received: every message that came, in order; junk: what came and is no message; channel: its transport."""

    channel: Channel

    def __init__(self, identity: Identity, patience: float) -> None:
        self.identity, self.patience = identity, patience
        self.opening = Reply()
        self.received: list[JsonObject] = []
        self.junk: list[bytes] = []
        self._numbers = count(1)
        self._open: dict[tuple[type, object], Future[Reply]] = {}
        self._news = threading.Condition()
        self._ended = ""

    @property
    def name(self) -> str:
        """The name it gives in ``clientInfo``."""
        return self.identity.name

    def __repr__(self) -> str:
        return f"<client {self.name}>"

    # What the test does

    def request(
        self, method: str, params: Mapping[str, object] | None = None, *, id: str | int | None = None
    ) -> Pending[Reply]:
        """Send a request. id: its id; None: the next of 1, 2, 3 … Raises ValueError if a request with this
        id is open."""
        number = next(self._numbers) if id is None else id
        answer: Future[Reply] = Future()
        pending = Pending(answer, f"{self.name}, {method}", self.patience, number)
        with self._news:
            if _key(number) in self._open:
                raise ValueError(f"{self.name} has an open request with the id {number!r}")
            if self._ended:
                answer.set_exception(ConnectionEnded(f"{method}: {self._ended}"))
                return pending
            self._open[_key(number)] = answer
        self.channel.send({**_message(method, params), "id": number})
        return pending

    def call(
        self,
        tool: str,
        arguments: Mapping[str, object] | None = None,
        *,
        id: str | int | None = None,
        progress_token: str | int | None = None,
    ) -> Pending[Reply]:
        """Call a tool."""
        params: JsonObject = {"name": tool, "arguments": dict(arguments or {})}
        if progress_token is not None:
            params["_meta"] = {"progressToken": progress_token}
        return self.request("tools/call", params, id=id)

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a notification."""
        self.channel.send(_message(method, params))

    def cancel(self, request: Pending[Reply]) -> None:
        """Cancel a request; it may then never be answered."""
        self.notify("notifications/cancelled", {"requestId": request.id})

    def answer(self, question: Mapping[str, object], result: Mapping[str, object]) -> None:
        """Answer a question that was left open. question: the message, as in ``received``."""
        self.channel.send({"jsonrpc": "2.0", "id": question["id"], "result": dict(result)})

    def messages(self, method: str) -> list[JsonObject]:
        """The params of every notification, or question, ``method`` that came."""
        return [as_object(it.get("params")) for it in list(self.received) if it.get("method") == method]

    def wait_for(self, wanted: Callable[[JsonObject], object]) -> Pending[JsonObject]:
        """The first message, received or future, for which ``wanted`` is true."""
        found: Future[JsonObject] = Future()

        def watch() -> None:
            seen = 0
            with self._news:
                while not found.done():
                    for message in self.received[seen:]:
                        if wanted(message):
                            found.set_result(message)
                            return
                    seen = len(self.received)
                    if self._ended:
                        found.set_exception(ConnectionEnded(self._ended))
                        return
                    self._news.wait()

        threading.Thread(target=watch, daemon=True).start()
        return Pending(found, f"{self.name}, the message waited for", self.patience)

    def disconnect(self) -> Pending[None]:
        """End the connection in the orderly way: the end of stdin, or DELETE of the session. Open requests
        end with ConnectionEnded."""
        return in_thread(self._close, f"{self.name}, its end", self.patience)

    def kill(self) -> None:
        """End the connection as a crash does: SIGKILL for its process, or all its HTTP connections closed
        and the session left. Open requests end with ConnectionEnded."""
        self.channel.kill()
        self.ended("this client was killed")

    def open(self, patience: float) -> None:
        """The handshake. Blocks. patience: seconds for it. Raises as `Pending`."""
        info = {"name": self.identity.name, "version": self.identity.version}
        capabilities = self.identity.declared()
        params = {
            "protocolVersion": self.identity.protocol,
            "capabilities": capabilities,
            "clientInfo": info,
        }
        opening = self.request("initialize", params)
        opening.patience = patience
        self.opening = opening.result()
        self.notify("notifications/initialized")
        self.channel.opened()

    def _close(self) -> None:
        self.channel.close()
        self.ended("this client has disconnected")

    # What the transport does: see `channel.Sink`

    def unanswered(self, id: object, why: str) -> None:
        """See `Sink`."""
        with self._news:
            answer = self._open.pop(_key(id), None)
        if answer is not None:
            answer.set_exception(ConnectionEnded(why))

    def ended(self, why: str) -> None:
        """See `Sink`."""
        with self._news:
            self._ended = self._ended or why
            left, self._open = list(self._open.values()), {}
            self._news.notify_all()
        for answer in left:
            answer.set_exception(ConnectionEnded(self._ended))

    def took(self, raw: bytes) -> None:
        """See `Sink`."""
        try:
            message = msgspec.json.decode(raw, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.junk.append(raw)
            return
        with self._news:
            self.received.append(message)
            answer = None if "method" in message else self._open.pop(_key(message.get("id")), None)
            self._news.notify_all()
        if answer is not None:
            self._settle(answer, message)
        elif "method" in message and "id" in message:
            self._asked(message)

    @staticmethod
    def _settle(answer: Future[Reply], message: JsonObject) -> None:
        error = message.get("error")
        if isinstance(error, dict):
            answer.set_exception(ErrorAnswer(error.get("code"), error.get("message"), error.get("data")))
        else:
            answer.set_result(Reply(as_object(message.get("result"))))

    def _asked(self, question: JsonObject) -> None:
        method = str(question["method"])
        says = self.identity.answers().get(method)
        if method == "ping":
            self.answer(question, {})
        elif says is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"{self.name} does not offer {method}"}
            self.channel.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        else:
            said = says(as_object(question.get("params"))) if callable(says) else says
            if said is not None:
                self.answer(question, said)


def in_thread(work: Callable[[], None], what: str, patience: float) -> Pending[None]:
    """Run ``work`` in a thread of its own."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return Pending(done, what, patience)


def _key(id: object) -> tuple[type, object]:
    """1 and "1" are different ids; null and others that are no ids are none of ours."""
    return type(id), id if isinstance(id, str | int) else None


def _message(method: str, params: Mapping[str, object] | None) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": dict(params)})
