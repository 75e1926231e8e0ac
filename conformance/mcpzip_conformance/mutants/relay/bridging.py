"""Questions to the client, if client and server have different eras.

The rule: a legacy server asks during a call and waits; a modern client is asked by the result of its request,
and sends the answers in a new request. So for a modern client the call is suspended under a random key until
the answers come; for a legacy client the request to the modern server is sent again.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping

from mcpzip.wire import (
    INVALID_PARAMS,
    Request,
    RpcError,
    join_object,
    quote,
    without_members,
)
from mcpzip_conformance.mutants.relay.end import GoneError, Party, RefusedError, pass_on
from mcpzip_conformance.mutants.relay.naming import members, text

HELD = 600.0
"""Seconds a call stays suspended."""
ROUNDS = 10
"""Rounds of questions within one request."""


class SuspendedCall:
    """A call of a legacy server for a modern client. It takes the client's place until the call ends, because
    each round of questions can be another HTTP exchange."""

    def __init__(self, client: Party, request: Request) -> None:
        self.word = secrets.token_urlsafe(24)
        self._client, self._id = client, request.id
        self._questions: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()
        self._waiting: list[asyncio.Future[bytes]] = []

    def call(self, request: Request, server: Party, params: bytes | None) -> None:
        """Start the call."""
        self._call = asyncio.get_running_loop().create_task(pass_on(request, self, server, params))

    async def outcome(self) -> bytes:
        """The result, or the next questions. Raises RefusedError. Cancelling the caller cancels the call."""
        next_question = asyncio.ensure_future(self._questions.get())
        try:
            await asyncio.wait((self._call, next_question), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._call.cancel()
            raise
        finally:
            next_question.cancel()
        if self._call.done():
            return self._call.result()
        method, params = next_question.result()
        question = {"method": quote(method)} | ({} if params is None else {"params": params})
        return join_object(
            {
                "resultType": quote("input_required"),
                "inputRequests": join_object({"question": join_object(question)}),
                "requestState": quote(self.word),
            }
        )

    def resume(self, client: Party, request: Request, answer: bytes) -> None:
        """Continue with the client's answer to the question."""
        self._client, self._id = client, request.id
        question = self._waiting.pop(0)
        if not question.done():
            question.set_result(answer)

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        about: bytes | None = None,
        progress: Callable[[bytes], None] | None = None,
        origin: tuple[Party, bytes] | None = None,
    ) -> bytes:
        """The server's question."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._questions.put_nowait((method, params))
        try:
            return await asyncio.wait_for(answer, HELD)
        except TimeoutError:
            raise GoneError("The client did not come again with the answer.") from None

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        """Send a notification to the client, in the current exchange."""
        self._client.notify(method, params, self._id)

    def forward_notification(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """See `End.forward_notification`."""
        self._client.forward_notification(server, method, params, self._id, subscribed=subscribed)


async def call_legacy_server(
    request: Request, client: Party, server: Party, params: bytes | None, calls: dict[str, SuspendedCall]
) -> bytes:
    """The answer of a legacy server for a modern client: its result or its questions. calls: suspended calls
    by key. Raises RefusedError."""
    fields = members(params)
    word = text(fields.get("requestState"))
    if not word:
        call = SuspendedCall(client, request)
        call.call(request, server, without_members(params or b"{}", ("inputResponses", "requestState")))
    elif word in calls:
        call = calls.pop(word)
        call.resume(client, request, members(fields.get("inputResponses")).get("question", b"{}"))
    else:
        raise RefusedError(RpcError(INVALID_PARAMS, "This requestState is not, or no longer, known."))
    result = await call.outcome()
    if members(result).get("requestState") == quote(call.word):
        calls[call.word] = call
    return result


async def resolve_input(
    request: Request, client: Party, server: Party, params: bytes | None, result: bytes
) -> bytes:
    """Ask the legacy client the questions in ``result`` of a modern server and send the answers, until the
    server asks nothing more. Returns the last result. Raises RefusedError."""
    for _ in range(ROUNDS):
        fields = members(result)
        if text(fields.get("resultType")) != "input_required":
            return result
        answers = await answers_of(client, request, members(fields.get("inputRequests")))
        more = {"inputResponses": join_object(answers)}
        if "requestState" in fields:
            more["requestState"] = fields["requestState"]
        again = join_object({**members(params), **more})
        result = await pass_on(request, client, server, again)
    return result


async def answers_of(client: Party, request: Request, questions: Mapping[str, bytes]) -> dict[str, bytes]:
    """The answers of a legacy client to these questions. Raises RefusedError."""
    answers = {}
    for key, question in questions.items():
        request_ = members(question)
        method = text(request_.get("method"))
        answers[key] = await client.request(method, request_.get("params"), about=request.id)
    return answers
