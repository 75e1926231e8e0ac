"""What went wrong over HTTP, as a `ChannelClosedError` and in words.

The rules: what a server says is quoted, one line and not too long; what we make of it stands beside it, as
ours. Whether a request may have run is decided here: a refusal before anything ran is safe to send again.
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
NEITHER = "it answered with something else than JSON or an event stream"
LOST = "the connection was lost"
FOLLOW = "If that is the right server, put its address into the config."
UNREACHABLE = "Start the server, or mend 'url' in the config."

NETWORK = (httpx.HTTPError, httpx.InvalidURL, McpzipError, BodyTooLongError, OSError, ValueError)
"""What sending a request, or reading its response, may raise: `TimeoutError` is an OSError, and
`ContentCodingError` and `EventTooLongError` are ValueErrors."""

_NOTHING_RAN = (307, 308, 401, 403, 404, 405, 406, 413, 415, 421, 429)
"""Statuses with which a server says that it did nothing with a request."""

_KEYS = ("message", "error_description", "detail", "title", "error", "reason", "msg")
"""Where it stands in JSON what went wrong, as it is met (RFC 6749, 5.2; RFC 9457; JSON-RPC 2.0, 5.1)."""

_REMEDIES = {
    401: "It wants a sign-in: put an Authorization header under 'headers' in the config.",
    403: "If it is about credentials, check 'headers' in the config.",
    404: "Check 'url' in the config.",
    405: 'It may speak the other transport over HTTP: change "type" ("http", "sse") in the config.',
    429: "It is rate-limiting us: wait before trying again.",
}
_SERVER_ERROR = "The fault is on its side: its own log says more."


def failure(error: Exception, url: httpx.URL) -> ChannelClosedError:
    """What became of a request to ``url`` that got no response, or one that broke off, with ``error``."""
    match error:
        case ChannelClosedError():
            return error
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout():
            return ChannelClosedError(unreachable(url, error), sent=False, remedy=UNREACHABLE)
        case EventTooLongError(size_at_least=most):
            return ChannelClosedError(too_long(most), sent=True, fatal=False)
        case BodyTooLongError():
            return ChannelClosedError(too_long(MESSAGE), sent=True, fatal=False)
        case ContentCodingError():
            return ChannelClosedError(str(error), sent=True, fatal=False)
        case httpx.TransportError():
            return ChannelClosedError(LOST, sent=True, fatal=False)
        case McpzipError() | ValueError() | httpx.InvalidURL():  # it could not be signed, or put together
            return ChannelClosedError(one_line(str(error)).rstrip("."), sent=False)
    what = f"{type(error).__name__}: {shortened(str(error))}"
    return ChannelClosedError(f"the transport failed ({what})", sent=True)


def refused(response: httpx.Response, body: bytes, *, in_session: bool) -> ChannelClosedError:
    """What became of a request that was answered with an HTTP error. body: what it begins with. in_session:
    whether the request named a session.
    """
    status = response.status_code
    if status == 404 and in_session:
        # The server doesn't know our session: it can't have run anything for it (spec: session management).
        return ChannelClosedError("the server forgot our session", sent=False, status=404)
    return ChannelClosedError(
        refusal(response, body),
        sent=status not in _NOTHING_RAN,
        remedy=remedy(status),
        fatal=status == 401 or (status == 400 and in_session),  # which may mean a forgotten session, too
        status=status,
    )


def redirected(response: httpx.Response, target: httpx.URL) -> ChannelClosedError:
    """What became of a request that was redirected to ``target``, which is not followed."""
    status = response.status_code
    where = str(target.copy_with(userinfo=b""))
    reason = f"it redirects to {shortened(where)}, which is not followed"
    return ChannelClosedError(
        reason, sent=status not in _NOTHING_RAN, remedy=FOLLOW, fatal=False, status=status
    )


def error_in(body: bytes) -> RpcError | None:
    """The JSON-RPC error that the ``body`` of an HTTP error is; None when it is none. It answers the request
    that was posted, whatever id it has (spec 2026-07-28: basic/transports/streamable-http).
    """
    try:
        fields = split_object(body)
        error = split_object(fields.get("error", b""))
    except NotAnObject:
        return None
    if fields.get("jsonrpc") != b'"2.0"' or "result" in fields or "method" in fields or "code" not in error:
        return None
    return read_error(fields["error"])


def unreachable(url: httpx.URL, error: Exception) -> str:
    """Why no connection to ``url`` came about."""
    detail = str(error).lower()
    where = f"{url.scheme}://{url.netloc.decode()}"
    if isinstance(error, httpx.ConnectTimeout):
        return f"{where} did not accept a connection within {CONNECT_TIMEOUT:g} s"
    if "name or service" in detail or "nodename" in detail or "getaddrinfo" in detail:
        return f"the host of {where} can't be found"
    if "certificate" in detail or "ssl" in detail:
        return f"{where} has no certificate we trust ({shortened(str(error))})"
    return f"nothing accepts connections at {where}"


def too_long(most: int) -> str:
    """Why an answer is lost that was longer than ``most`` bytes."""
    return f"the answer can't be read: a message of more than {most} bytes is too long"


def remedy(status: int) -> str:
    """What the user can do about an HTTP status, as a sentence, or ""."""
    return _REMEDIES.get(status, _SERVER_ERROR if status >= 500 else "")


def refusal(response: httpx.Response, body: bytes) -> str:
    """That ``response`` refuses, and with which words. body: what it begins with."""
    status, phrase = response.status_code, response.reason_phrase
    answered = f"it answered HTTP {status}"
    if phrase:
        answered += f" {phrase}" if phrase == _known(status) else f" {quoted(phrase)}"
    words = words_in(body, response.headers.get("content-type", ""))
    return f"{answered}: {quoted(words)}" if words and words != phrase else answered


def words_in(body: bytes, content_type: str) -> str:
    """What the ``body`` of a refusal says to people, or "". Pages for a browser say nothing."""
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
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    for _ in range(3):
        if isinstance(said, str):
            return said.strip()
        if not isinstance(said, dict):
            return ""
        found = [said[key] for key in _KEYS if isinstance(said.get(key), str) and said[key].strip()]
        if found:
            return str(found[0]).strip()
        said = said.get("error")
    return ""


def _known(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
