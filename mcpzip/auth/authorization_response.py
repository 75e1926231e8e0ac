"""The authorization response (RFC 6749, 4.1.2), which a browser or a person brings back (pure).

The rules: a response is only valid with the ``state`` of its login (RFC 6749, 10.12), compared in constant
time. An invalid one changes nothing: the login goes on waiting. No word of it is repeated, except why the
authorization server refused, and that as one line without control characters.
"""

import hmac
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from mcpzip.model.quoting import quoted, shortened

MOST_PARAMETERS = 50

_MEANT = ("code", "error", "state", "iss", "error_description")

DENIALS = {
    "invalid_request": "it found the request malformed",
    "unauthorized_client": "it doesn't let this client sign in so",
    "access_denied": "you, or it, said no",
    "unsupported_response_type": "it gives no authorization codes",
    "invalid_scope": "it doesn't know, or doesn't grant, the scope asked for",
    "server_error": "something went wrong in it",
    "temporarily_unavailable": "it is overloaded or under maintenance",
    "invalid_target": "it doesn't issue tokens for this server",
    "interaction_required": "it needs you to do something it couldn't show",
    "login_required": "you aren't logged in there",
    "account_selection_required": "you have to choose an account there",
    "consent_required": "you haven't consented there",
}
"""What its error codes mean (RFC 6749, 4.1.2.1; RFC 8707, 2; OpenID Connect Core 1.0, 3.1.2.6)."""

_WORD = re.compile("[a-z_]{1,40}")
_PASSING = ("server_error", "temporarily_unavailable")


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """A code. iss: the authorization server (RFC 9207), None if it isn't said."""

    code: str = field(repr=False)
    state: str = field(repr=False)
    iss: str | None


@dataclass(frozen=True, slots=True)
class AuthorizationDenied:
    """An error. why: a part of a sentence. passing: whether a later login may succeed."""

    why: str
    passing: bool


@dataclass(frozen=True, slots=True)
class InvalidResponse:
    """No response to this login. why: a sentence."""

    why: str


Response = AuthorizationCode | AuthorizationDenied | InvalidResponse


def read_response(query: str, state: str) -> Response:
    """What the query of the redirect URI says to a login that was begun with ``state``."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return InvalidResponse("The answer can't be read.")
    names = [name for name, _ in pairs]
    twice = [name for name in _MEANT if names.count(name) > 1]
    if twice:
        return InvalidResponse(f"The answer has {twice[0]!r} twice.")
    said = dict(pairs)
    code, error = said.get("code", ""), said.get("error", "")
    if not code and not error:
        return InvalidResponse("The answer has neither a code nor an error.")
    given = said.get("state", "")
    if not given:
        return InvalidResponse("The answer lacks the state of this login, so it may be somebody else's.")
    if not hmac.compare_digest(_bytes(given), _bytes(state)):
        return InvalidResponse("The answer has the state of another login: an older one, or somebody else's.")
    if code and error:
        return InvalidResponse("The answer has both a code and an error.")
    if code:
        return AuthorizationCode(code, state, said.get("iss"))
    return _denial(error, said.get("error_description", ""))


def pasted_query(text: str, redirect_uri: str) -> str | InvalidResponse:
    """The query of what a person pasted: the address the browser ended up at, or its query alone."""
    address = "".join(_without_brackets(text).split()).strip("\"'<>").partition("#")[0]
    place, found, query = address.partition("?")
    if found and place in ("", redirect_uri, redirect_uri.partition("://")[2]):
        return query
    if not found and "=" in place and "/" not in place.partition("=")[0]:
        return place
    return InvalidResponse(f"That is not the address the browser ended up at: it begins with {redirect_uri}?")


def shown_code(code: str) -> str:
    """An error ``code`` as it is shown: a word as it is, anything else as a quotation."""
    return code if _WORD.fullmatch(code) or not code else quoted(code)


def _denial(error: str, description: str) -> AuthorizationDenied:
    error, description = shown_code(error), shortened(description).rstrip(" .")
    why = DENIALS.get(error, "it gave no reason that is known")
    said = f", and says {quoted(description)}" if description else ""
    return AuthorizationDenied(f"{why} ({error}){said}", error in _PASSING)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _without_brackets(text: str) -> str:
    """Without what terminals put around a paste (xterm's bracketed paste mode)."""
    return text.replace("\x1b[200~", "").replace("\x1b[201~", "")
