"""The errors of an authorization server."""

from mcpzip_fakes.answer import JsonObject


class Refused(Exception):
    """An OAuth error (RFC 6749, section 5.2). code: ``invalid_grant`` and so on; why: a sentence; status,
    headers: of the HTTP answer."""

    def __init__(self, code: str, why: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{code}: {why}")
        self.code, self.why, self.status, self.headers = code, why, status, headers or {}

    @property
    def body(self) -> JsonObject:
        """The JSON body of the answer."""
        return {"error": self.code, "error_description": self.why}


class ShownToPerson(Exception):
    """An error in a request for authorization that is shown on a page, because its client or redirect URI is
    not valid (RFC 6749, section 4.1.2.1)."""
