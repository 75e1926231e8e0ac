"""The authorization request (RFC 6749, 4.1.1) with PKCE (RFC 7636), which a browser takes to an authorization
server, and from which server its answer has to come (RFC 9207).
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode, urlsplit

from mcpzip.auth.metadata import ServerMetadata
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import shortened

_URL_SIGNS = "!#$%&'()*+,-./:;=?@[]_~"


@dataclass(frozen=True, slots=True)
class Proof:
    """What shows that an answer is to a request of ours. state: comes back with it. verifier: is shown with
    the code (RFC 7636, 4.1).
    """

    state: str = field(repr=False)
    verifier: str = field(repr=False)


def new_proof() -> Proof:
    """A new one."""
    return Proof(secrets.token_urlsafe(32), secrets.token_urlsafe(96))


def authorization_url(
    page: str, client_id: str, redirect_uri: str, proof: Proof, more: Mapping[str, str]
) -> str:
    """The address of a request at ``page``, the authorization endpoint. more: further parameters."""
    digest = hashlib.sha256(proof.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": proof.state,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        **more,
    }
    return f"{page}{'&' if '?' in page else '?'}{urlencode(query)}"


def plain_url(url: str, server: str) -> str:
    """``url`` as it may be shown on a terminal and given to a browser. server: whose sign-in it is. Raises
    LoginError.

    A server named it: one that isn't a web page could start a program (CVE-2025-6514).
    """
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
        url.encode()
    except ValueError:  # a bracket that is not closed, or half of a character
        plain = False
    if not plain:
        why = "is no plain web address, so it was not opened"
        raise LoginError(f"The sign-in page of {server} {why}. Tell whoever runs it.")
    return quote(url, safe=_URL_SIGNS)


def code_form(code: str, client_id: str, redirect_uri: str, proof: Proof) -> dict[str, str]:
    """The form that asks the token endpoint for a token (RFC 6749, 4.1.3)."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "client_id": client_id,
        "code_verifier": proof.verifier,
    }


def check_answering_issuer(iss: str | None, metadata: ServerMetadata | None) -> None:
    """Raises LoginError for an answer of another authorization server than the one that was asked: RFC 9207,
    2.4, which compares the two as strings.
    """
    if iss is None:
        if metadata is not None and metadata.authorization_response_iss_parameter_supported:
            raise LoginError(
                "the browser came back without saying from which authorization server, and that was promised."
            )
    elif metadata is None or iss != metadata.issuer:
        asked = "one without metadata" if metadata is None else shortened(metadata.issuer)
        raise LoginError(
            f"the browser came back from another authorization server ({shortened(iss)}) than it was sent to "
            f"({asked})."
        )
