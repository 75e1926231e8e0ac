"""What an authorization server replies at its endpoints, before anything is made of it. Imports the SDK.

The rules: a reply is a stranger's. Only what we asked for is taken out of it, and only where it can be used
as it is: in a header, in a form, on a terminal. No error repeats a reply, but for what it says of why it
refused, as one line; a reply may hold the secrets that were shown to get it.
"""

import json
import re

import httpx2
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import ValidationError

from mcpzip.auth.answer import worded
from mcpzip.auth.scopes import well_formed
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import quoted, shortened
from mcpzip.model.redaction import register

LONGEST = 10 * 365 * 86_400
"""Seconds after which a token ends that is said to be good for longer."""

_TOKEN = re.compile(r"[!-~]+")
_TEXT = re.compile(r"[ -~]*")
"""RFC 6750, 2.1, as it is met: what fits into a header. RFC 6749, appendix A: VSCHAR."""
_SECRETS = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")
_WHOLE = re.compile(r"\d{1,20}")


def oauth_error(response: httpx2.Response) -> tuple[str, str]:
    """The error code and its description in a reply (RFC 6749, 5.2), each a line, or ""s."""
    body = _object(response)
    code, description = body.get("error"), body.get("error_description")
    return _line(code), _line(description)


def why(response: httpx2.Response) -> str:
    """How ``response`` refuses: its status, its error code and what it says of it, as far as it does."""
    code, description = oauth_error(response)
    said = f", and says {quoted(description.rstrip(' .'))}" if description else ""
    status = f"HTTP {response.status_code}"
    if response.has_redirect_location:
        target = response.headers["location"]
        return f"{status}: it redirects to {shortened(target)}, which is not followed"
    return f"{status}: {worded(code)}{said}" if code else status + said


def token_reply(response: httpx2.Response) -> httpx2.Response:
    """The reply of a token endpoint (RFC 6749, 5.1) with what we make use of, and nothing else. Raises
    LoginError for one that grants nothing of use.
    """
    if response.status_code not in (200, 201):
        raise LoginError(f"its token endpoint refuses ({_closed(why(response))}).")
    said = _object(response)
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
    known = {
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": _seconds(said.get("expires_in")),
        "scope": well_formed(scope) if isinstance(scope, str) else None,
        "refresh_token": refresh or None,
    }
    told = {name: value for name, value in known.items() if value is not None}
    return httpx2.Response(200, json=told, request=response.request)


def registration_reply(response: httpx2.Response) -> httpx2.Response:
    """The reply of a registration endpoint (RFC 7591, 3.2). Raises LoginError for one that is of no use."""
    if response.status_code not in (200, 201):
        raise LoginError(f"its authorization server registers no new clients ({_closed(why(response))}).")
    said = _object(response)
    for name in ("client_id", "client_secret"):
        value = said.get(name)
        if isinstance(value, str) and not _TEXT.fullmatch(value):
            raise LoginError(f"it registers us with a {name} that can't be sent back; tell whoever runs it.")
    try:
        OAuthClientInformationFull.model_validate(said)
    except ValidationError:
        raise LoginError(
            "its registration endpoint's answer is not as RFC 7591 has it; tell whoever runs it."
        ) from None
    return response


def _object(response: httpx2.Response) -> dict[str, object]:
    """The JSON object in a reply, or {}. Its secrets are none to be said from now on."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict):
        return {}
    for name in _SECRETS:
        if isinstance(value := body.get(name), str):
            register(value, passing=True)
    return body


def _seconds(said: object) -> int | None:
    """For how long a token is good; None where that isn't said, or can't be."""
    if isinstance(said, str) and _WHOLE.fullmatch(said):
        said = int(said)
    if isinstance(said, bool) or not isinstance(said, int | float) or not said >= 1:  # NaN is not either
        return None
    return int(min(said, LONGEST))


def _line(said: object) -> str:
    return shortened(said) if isinstance(said, str) else ""


def _closed(text: str) -> str:
    return text.rstrip(".")
