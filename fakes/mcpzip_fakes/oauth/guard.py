"""Checks the tokens of requests to a protected MCP server.

The rules: RFC 6750 for the answers, RFC 9728 for the URL of the metadata, MCP's authorization chapter for the
rest. Each check is recorded as an event ``bearer``: ``token`` (the id of the token, "" if it is unknown),
``raw`` (the header) and ``refused`` (the reason, "" if it was accepted).
"""

from urllib.parse import urlsplit

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth import documents
from mcpzip_fakes.oauth.authority import Authority
from mcpzip_fakes.oauth.lies import elsewhere
from mcpzip_fakes.oauth.settings import OAuth
from mcpzip_fakes.oauth.token_store import Token
from mcpzip_fakes.record import Writer
from mcpzip_fakes.request import as_object


class Guard:
    """The guard of the MCP server ``name``. authority: the authorization server whose tokens it accepts;
    `trust` changes it.

    own: its settings; None: the current ones of the authority.
    """

    def __init__(self, authority: Authority, name: str, record: Writer, own: OAuth | None = None) -> None:
        self.authority = authority
        self.url = ""
        self._name, self._record, self._own = name, record, own

    @property
    def told(self) -> OAuth:
        """Its settings."""
        return self._own or self.authority.told

    def configure(self, told: OAuth) -> None:
        """Use settings of its own from now on."""
        self._own = told

    def stands_at(self, url: str) -> None:
        """Set the URL of the MCP endpoint, here and at the authorization server."""
        self.url = url
        self.trust(self.authority)

    def trust(self, authority: Authority) -> None:
        """Accept only the tokens of this authorization server from now on."""
        with authority.lock:
            self.authority = authority
            authority.resources += [
                each for each in (self.url, self._origin) if each not in authority.resources
            ]

    @property
    def _origin(self) -> str:
        return self.url.removesuffix(urlsplit(self.url).path)

    @property
    def resource(self) -> str:
        """Its resource identifier (RFC 8707): its URL, or its origin if its metadata are for that."""
        return self._origin if self.told.resource_metadata == "root" else self.url

    @property
    def metadata_path(self) -> str:
        """The path of its metadata, "" if there are none."""
        return documents.resource_path(self.told, urlsplit(self.url).path)

    def metadata(self) -> JsonObject:
        """Its metadata."""
        return documents.of_resource(self.told, self.resource, self._name, self.authority.issuer)

    def turns_away(
        self, authorization: str | None, message: JsonObject, connection: int
    ) -> tuple[int, bytes, dict[str, str]] | None:
        """Status, body and headers of the refusal of a request with this header; None if it is accepted."""
        method = message.get("method")
        if authorization is None and method in self.told.open_methods:
            return None
        raw = authorization or ""
        scheme, _, value = raw.partition(" ")
        token, why = self._judge(value.strip()) if scheme.lower() == "bearer" else (None, "there is none")
        lacking = "" if why else self._lacking(token, message)
        self._note(token, raw, why or (lacking and f"it lacks {lacking}"), connection)
        if why:
            code = "invalid_token" if raw else ""
            wanted = " ".join(self.told.first_scopes) if self.told.challenge_scope else ""
            return 401, b"Unauthorized", self._challenge(code, why, wanted)
        if lacking:
            return 403, b"Forbidden", self._challenge("insufficient_scope", "more is needed", lacking)
        return None

    def _judge(self, value: str) -> tuple[Token | None, str]:
        return self.authority.judge(value, (self.url, self._origin))

    def _lacking(self, token: Token | None, message: JsonObject) -> str:
        """The scopes that the request needs, if the token lacks some of them; else ""."""
        needed = self.told.required_scopes
        if message.get("method") == "tools/call":
            name = as_object(message.get("params")).get("name")
            needed += self.told.tool_scopes.get(str(name), ())
        has = token.scope if token else ()
        return "" if {*needed} <= {*has} else " ".join(needed)

    def _challenge(self, code: str, why: str, scope: str) -> dict[str, str]:
        """The header of a 401 or 403 (RFC 6750, section 3; RFC 9728, section 5.1)."""
        told = self.told
        if told.challenge == "none":
            return {}
        said = {"error": code, "error_description": why if code else "", "scope": scope}
        if told.challenge == "metadata" and self.metadata_path:
            where = self._origin + self.metadata_path
            said["resource_metadata"] = elsewhere(where) if "foreign-metadata" in told.lies else where
        fields = ", ".join(f'{key}="{value}"' for key, value in said.items() if value)
        return {"www-authenticate": f"Bearer {fields}".strip()}

    def _note(self, token: Token | None, raw: str, refused: str, connection: int) -> None:
        id = token.id if token else ""
        self._record.event("bearer", {"token": id, "raw": raw, "refused": refused}, connection)
