"""What an authorization server answers at its endpoints.

The rules: an answer is a stranger's. Only what we asked for is taken out of it, and only if it can be used
unchanged: in a header, in a form, on a terminal. No error repeats an answer, except its reason for a refusal,
as one line: an answer may hold the secrets that were shown to get it.
"""

import json
import re
from dataclasses import dataclass, field

import httpx

from mcpzip.auth.authorization_response import shown_code
from mcpzip.auth.client import Client, read_client
from mcpzip.auth.scopes import well_formed
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import quoted, shortened
from mcpzip.model.redaction import register

LONGEST = 10 * 365 * 86_400
"""Seconds after which a token ends that is said to be valid for longer."""

_TOKEN = re.compile(r"[!-~]+")
_TEXT = re.compile(r"[ -~]*")
"""RFC 6750, 2.1, as it is met: what fits into a header. RFC 6749, appendix A: VSCHAR."""
_SECRETS = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")
_WHOLE = re.compile(r"\d{1,20}")


@dataclass(frozen=True, slots=True)
class Token:
    """What a token endpoint grants (RFC 6749, 5.1). refresh_token: "" for none. expires_in: seconds, None if
    that isn't said. scope: None if that isn't said.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in: int | None
    scope: str | None


def oauth_error(response: httpx.Response, *, registers: bool = True) -> tuple[str, str]:
    """The error code and its description in an answer (RFC 6749, 5.2), each a line, or ""s. registers: see
    `read_token`.
    """
    body = _object(response, registers=registers)
    code, description = body.get("error"), body.get("error_description")
    return _line(code), _line(description)


def why(response: httpx.Response) -> str:
    """How ``response`` refuses: its status, its error code and what it says of it, as far as it does."""
    code, description = oauth_error(response)
    said = f", and says {quoted(description.rstrip(' .'))}" if description else ""
    status = f"HTTP {response.status_code}"
    if response.has_redirect_location:
        target = response.headers["location"]
        return f"{status}: it redirects to {shortened(target)}, which is not followed"
    return f"{status}: {shown_code(code)}{said}" if code else status + said


def read_token(response: httpx.Response, *, registers: bool = True) -> Token:
    """The answer of a token endpoint. registers: whether its secrets are redacted everywhere from now on.
    Raises LoginError if it grants nothing that can be used.
    """
    if response.status_code not in (200, 201):
        raise LoginError(f"its token endpoint refuses ({_closed(why(response))}).")
    said = _object(response, registers=registers)
    token, refresh = said.get("access_token"), said.get("refresh_token")
    kind = said.get("token_type", "Bearer")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        what = "no access token" if not token else "an access token that fits into no header"
        raise LoginError(f"its token endpoint answers with {what}; tell whoever runs it.")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        named = quoted(kind) if isinstance(kind, str) else "no name"
        raise LoginError(f"it grants tokens of the type {named}, and only Bearer is known here.")
    if refresh is not None and not (isinstance(refresh, str) and _TEXT.fullmatch(refresh)):
        raise LoginError("it grants a refresh token that can't be sent back; tell whoever runs it.")
    scope = said.get("scope")
    return Token(
        token,
        refresh or "",
        _seconds(said.get("expires_in")),
        well_formed(scope) if isinstance(scope, str) else None,
    )


def read_registration(response: httpx.Response) -> Client:
    """The answer of a registration endpoint (RFC 7591, 3.2). Raises LoginError if it can't be used."""
    if response.status_code not in (200, 201):
        raise LoginError(f"its authorization server registers no new clients ({_closed(why(response))}).")
    said = _object(response)
    for name in ("client_id", "client_secret"):
        value = said.get(name)
        if isinstance(value, str) and not _TEXT.fullmatch(value):
            raise LoginError(f"it registers us with a {name} that can't be sent back; tell whoever runs it.")
    client = read_client(said)
    if client is None:
        raise LoginError(
            "its registration endpoint's answer is not as RFC 7591 has it; tell whoever runs it."
        )
    return client


def _object(response: httpx.Response, *, registers: bool = True) -> dict[str, object]:
    """The JSON object in an answer, or {}. registers: see `read_token`."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict):
        return {}
    for name in _SECRETS if registers else ():
        if isinstance(value := body.get(name), str):
            register(value, passing=True)
    return body


def _seconds(said: object) -> int | None:
    """For how long a token is valid; None where that isn't said, or can't be."""
    if isinstance(said, str) and _WHOLE.fullmatch(said):
        said = int(said)
    if isinstance(said, bool) or not isinstance(said, int | float) or not said >= 1:  # NaN is not either
        return None
    return int(min(said, LONGEST))


def _line(said: object) -> str:
    return shortened(said) if isinstance(said, str) else ""


def _closed(text: str) -> str:
    return text.rstrip(".")
