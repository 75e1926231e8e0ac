"""Who makes a request over HTTP: a person, or a machine, as an issuer or an API key says (pure)."""

import msgspec

API_KEYS = "mcpzip:api-keys"
"""The issuer of everybody who has an API key."""

PrincipalId = tuple[str, str]
"""An issuer, and the subject there: who it is, whatever token says so."""


class Principal(msgspec.Struct, frozen=True):
    """issuer: the identifier of the authorization server that vouches for it, or `API_KEYS`. subject: what it
    is called there for good. name: for people, on one line. groups: that it is in. scopes: of its token or
    key.
    """

    issuer: str
    subject: str
    name: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    @property
    def id(self) -> PrincipalId:
        """Who it is. Two principals with the same id are the same person."""
        return self.issuer, self.subject
