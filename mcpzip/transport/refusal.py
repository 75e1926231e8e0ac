"""How a server over HTTP refuses, and what it says of it.

The rule: what a server says is quoted, one line and not too long; what we make of it stands beside it, as
ours.
"""

from http import HTTPStatus

import httpx2
import msgspec

from mcpzip.model.quoting import quoted

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


def remedy(status: int) -> str:
    """What the user can do about an HTTP status, as a sentence, or ""."""
    return _REMEDIES.get(status, _SERVER_ERROR if status >= 500 else "")


def refusal(response: httpx2.Response, body: bytes) -> str:
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
