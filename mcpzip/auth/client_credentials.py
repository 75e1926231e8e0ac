"""Signing in with the machine's own credentials (RFC 6749, 4.4), and with a private key (RFC 7523, 2.2)."""

import secrets
import time

from mcpzip.auth.client import Client, authenticate
from mcpzip.auth.metadata import ServerMetadata
from mcpzip.config.schema import AuthConfig
from mcpzip.model.errors import LoginError
from mcpzip.model.redaction import register
from mcpzip.system.threads import in_thread

LIFETIME = 300
"""Seconds that an assertion is valid."""

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_INSTALL = 'signing with a private_key needs PyJWT and cryptography; run: pip install "mcpzip[jwt]".'


async def token_form(
    config: AuthConfig, client: Client, metadata: ServerMetadata | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The form that requests a token for ``client``, and its headers. Raises LoginError."""
    form = {"grant_type": "client_credentials"}
    if not config.private_key:
        return form, authenticate(client, form)
    if metadata is None:
        raise LoginError("its authorization server publishes no metadata, which a private_key needs.")
    assertion = await in_thread(lambda: _signed(config, metadata.issuer), "sign-jwt")
    register(assertion, passing=True)
    return {**form, "client_assertion": assertion, "client_assertion_type": _ASSERTION}, {}


def _signed(config: AuthConfig, audience: str) -> str:
    """The JWT by which mcpzip authenticates at the token endpoint of ``audience`` (RFC 7523, 2.2), signed
    with the configured key. Raises LoginError.
    """
    try:
        import jwt
    except ImportError:
        raise LoginError(_INSTALL) from None
    now = int(time.time())
    claims = {
        "iss": config.client_id,
        "sub": config.client_id,
        "aud": audience,
        "exp": now + LIFETIME,
        "iat": now,
        "jti": secrets.token_urlsafe(16),
    }
    try:
        with open(config.private_key, encoding="ascii") as file:
            return jwt.encode(claims, file.read(), algorithm=config.algorithm)
    except NotImplementedError as error:  # PyJWT is here, and cryptography is not
        raise LoginError(_INSTALL) from error
    except (OSError, ValueError, TypeError, jwt.PyJWTError) as error:
        raise LoginError(f"the private key at {config.private_key} can't be used: {error}.") from error
