"""How a server refuses a request: the ``WWW-Authenticate`` header (RFC 9110, 11.6.1; RFC 6750, 3) (pure)."""

import re
from dataclasses import dataclass

import httpx

from mcpzip.auth.scopes import well_formed

PROTOCOL_VERSION_HEADER = "mcp-protocol-version"

_NAME = r"[\w!#$%&'*+.^`|~-]"
_PARAMETER = re.compile(
    rf"""(?<!{_NAME})({_NAME}++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s,]+))""", re.ASCII | re.DOTALL
)
"""A parameter is only looked for where a name begins: a header takes as long to read as it is long."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A refusal of a request, as far as OAuth is concerned.

    status: the HTTP status, 401 or 403. scope: what a token has to cover, "" if the server does not say.
    error: the error code (RFC 6750, 3.1). resource_metadata: the URL of the server's metadata (RFC 9728,
    5.1). protocol_version: the MCP version of the refused request, "" if it had none.
    """

    status: int = 401
    scope: str = ""
    error: str = ""
    resource_metadata: str = ""
    protocol_version: str = ""

    @classmethod
    def of(cls, response: httpx.Response) -> "Challenge":
        """The challenge in ``response``. Of a parameter that comes several times the first counts."""
        found: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(response.headers.get("www-authenticate", "")):
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
        return cls(
            response.status_code,
            well_formed(found.get("scope", "")),
            found.get("error", ""),
            found.get("resource_metadata", ""),
            response.request.headers.get(PROTOCOL_VERSION_HEADER, ""),
        )

    @property
    def insufficient_scope(self) -> bool:
        """Whether the token was valid and its scope did not suffice (RFC 6750, 3.1)."""
        return self.status == 403 and self.error == "insufficient_scope"
