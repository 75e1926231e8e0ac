"""Errors of HTTP requests, as `ChannelClosedError` and in words.

The rules: a server's own text is quoted, on one line and shortened; our explanation stands beside it. Whether
a request may have run is decided here: a request that was refused before anything ran is safe to send again.
"""

from http import HTTPStatus

import httpx
import msgspec

from mcpzip.http.bodies import BodyTooLongError
from mcpzip.http.client import CONNECT_TIMEOUT
from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import MESSAGE
from mcpzip.model.quoting import one_line, quoted, shortened
from mcpzip.transport.base import ChannelClosedError
from mcpzip.wire import NotAnObject, RpcError, split_object
from mcpzip.wire.content_coding import ContentCodingError
from mcpzip.wire.envelope import read_error
from mcpzip.wire.event_stream import EventTooLongError

NOT_OURS = "its answer is not JSON-RPC"
NEITHER = "it answered with something other than JSON or an event stream"
LOST = "the connection was lost"
_FOLLOW = "If that is the right server, put its address into the config."
_UNREACHABLE = "Start the server, or fix 'url' in the config."

NETWORK = (httpx.HTTPError, httpx.InvalidURL, McpzipError, BodyTooLongError, OSError, ValueError)
"""The errors of sending a request and reading its response: `TimeoutError` is an OSError, and
`ContentCodingError` and `EventTooLongError` are ValueErrors."""

_NOT_EXECUTED = (307, 308, 401, 403, 404, 405, 406, 413, 415, 421, 429)
"""Statuses with which a server says that it did not run the request."""

_MESSAGE_KEYS = ("message", "error_description", "detail", "title", "error", "reason", "msg")
"""The members of a JSON error body that hold its message, in order of preference (RFC 6749, 5.2; RFC 9457;
JSON-RPC 2.0, 5.1)."""

_REMEDIES = {
    401: "It wants a sign-in: put an Authorization header under 'headers' in the config.",
    403: "If it is about credentials, check 'headers' in the config.",
    404: "Check 'url' in the config.",
    405: 'It may speak the other transport over HTTP: change "type" ("http", "sse") in the config.',
    429: "It is rate-limiting us: wait before trying again.",
}
_SERVER_ERROR = "The fault is on its side: its own log says more."


def failure(error: Exception, url: httpx.URL) -> ChannelClosedError:
    """The error of a request to ``url`` that failed with ``error`` before or while its response was read."""
    match error:
        case ChannelClosedError():
            return error
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout():
            return ChannelClosedError(_unreachable(url, error), sent=False, remedy=_UNREACHABLE)
        case EventTooLongError(size_at_least=most):
            return ChannelClosedError(_too_long(most), sent=True, fatal=False)
        case BodyTooLongError():
            return ChannelClosedError(_too_long(MESSAGE), sent=True, fatal=False)
        case ContentCodingError():
            return ChannelClosedError(str(error), sent=True, fatal=False)
        case httpx.TransportError():
            return ChannelClosedError(LOST, sent=True, fatal=False)
        case McpzipError() | ValueError() | httpx.InvalidURL():  # the request could not be signed or built
            return ChannelClosedError(one_line(str(error)).rstrip("."), sent=False)
    what = f"{type(error).__name__}: {shortened(str(error))}"
    return ChannelClosedError(f"the transport failed ({what})", sent=True)


def refused(response: httpx.Response, body: bytes, *, in_session: bool) -> ChannelClosedError:
    """The error of a request that was answered with an HTTP error. body: its first bytes. in_session: whether
    the request was part of a session.
    """
    status = response.status_code
    if status == 404 and in_session:
        # The server doesn't know our session: it can't have run anything for it (spec: session management).
        return ChannelClosedError("the server forgot our session", sent=False, status=404)
    return ChannelClosedError(
        refusal(response, body),
        sent=status not in _NOT_EXECUTED,
        remedy=_REMEDIES.get(status, _SERVER_ERROR if status >= 500 else ""),
        fatal=status == 401 or (status == 400 and in_session),  # 400 may mean an expired session
        status=status,
    )


def redirected(response: httpx.Response, target: httpx.URL) -> ChannelClosedError:
    """The error of a request that was redirected to ``target``; redirects are not followed."""
    status = response.status_code
    where = str(target.copy_with(userinfo=b""))
    reason = f"it redirects to {shortened(where)}, which is not followed"
    return ChannelClosedError(
        reason, sent=status not in _NOT_EXECUTED, remedy=_FOLLOW, fatal=False, status=status
    )


def error_in(body: bytes) -> RpcError | None:
    """The JSON-RPC error in the ``body`` of an HTTP error; None without one. It is the response to the posted
    request, whatever its id (spec 2026-07-28: basic/transports/streamable-http).
    """
    try:
        fields = split_object(body)
        error = split_object(fields.get("error", b""))
    except NotAnObject:
        return None
    if fields.get("jsonrpc") != b'"2.0"' or "result" in fields or "method" in fields or "code" not in error:
        return None
    return read_error(fields["error"])


def _unreachable(url: httpx.URL, error: Exception) -> str:
    """Why ``url`` could not be connected to."""
    detail = str(error).lower()
    where = f"{url.scheme}://{url.netloc.decode()}"
    if isinstance(error, httpx.ConnectTimeout):
        return f"{where} did not accept a connection within {CONNECT_TIMEOUT:g} s"
    if "name or service" in detail or "nodename" in detail or "getaddrinfo" in detail:
        return f"the host of {where} can't be found"
    if "certificate" in detail or "ssl" in detail:
        return f"{where} has no certificate we trust ({shortened(str(error))})"
    return f"nothing accepts connections at {where}"


def _too_long(most: int) -> str:
    """Why a response of more than ``most`` bytes can't be used."""
    return f"the answer can't be read: a message of more than {most} bytes is too long"


def refusal(response: httpx.Response, body: bytes) -> str:
    """The HTTP error as part of a sentence, with the server's message. body: its first bytes."""
    status, phrase = response.status_code, response.reason_phrase
    answered = f"it answered HTTP {status}"
    if phrase:
        answered += f" {phrase}" if phrase == _standard_phrase(status) else f" {quoted(phrase)}"
    words = words_in(body, response.headers.get("content-type", ""))
    return f"{answered}: {quoted(words)}" if words and words != phrase else answered


def words_in(body: bytes, content_type: str) -> str:
    """The message in the ``body`` of an HTTP error, or "". HTML pages are ignored."""
    try:
        text = body.decode("utf-8", "ignore").strip()
    except ValueError:
        return ""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json") or text.startswith("{"):
        return _in_json(text)
    readable = kind.startswith("text/") if kind else True
    return "" if not readable or kind == "text/html" or text.startswith("<") else text


def _in_json(text: str) -> str:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    for _ in range(3):
        if isinstance(value, str):
            return value.strip()
        if not isinstance(value, dict):
            return ""
        found = [
            value[key] for key in _MESSAGE_KEYS if isinstance(value.get(key), str) and value[key].strip()
        ]
        if found:
            return str(found[0]).strip()
        value = value.get("error")
    return ""


def _standard_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
