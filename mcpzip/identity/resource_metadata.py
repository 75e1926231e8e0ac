"""What a client is told about getting a token: the metadata of this protected resource (RFC 9728), and the
challenges of refusals (RFC 6750, 3) (pure).
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from mcpzip.config.schema import HttpConfig

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def metadata(config: HttpConfig) -> bytes:
    """The document, JSON text (RFC 9728, 2)."""
    scopes = dict.fromkeys(scope for issuer in config.issuers for scope in issuer.scopes)
    return msgspec.json.encode(
        {
            "resource": config.public_url,
            "resource_name": "mcpzip",
            "authorization_servers": [issuer.issuer for issuer in config.issuers],
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(scopes)} if scopes else {}),
        }
    )


def metadata_paths(config: HttpConfig) -> tuple[str, ...]:
    """Where the document is (RFC 9728, 3.1): the path of the public URL behind the well-known one, and the
    well-known one alone.
    """
    return tuple(dict.fromkeys((WELL_KNOWN + urlsplit(config.public_url).path, WELL_KNOWN)))


def metadata_url(config: HttpConfig) -> str:
    """The URL of the document; "" without issuers, which it would name."""
    if not config.issuers:
        return ""
    parts = urlsplit(config.public_url)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


def challenge(url: str, *, error: str = "", why: str = "", scopes: Sequence[str] = ()) -> bytes:
    """The value of ``WWW-Authenticate``. url: of the metadata, "" for none. error: see RFC 6750, 3.1. why:
    for people; printable ASCII. scopes: that a token has to have.
    """
    found = {
        "realm": "mcpzip",
        "error": error,
        "error_description": why,
        "scope": " ".join(scopes),
        "resource_metadata": url,
    }
    return ("Bearer " + ", ".join(f'{key}="{value}"' for key, value in found.items() if value)).encode(
        "latin-1"
    )
