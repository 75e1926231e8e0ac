"""How an authorization server says no."""

from mcpzip_fakes.answer import JsonObject


class Refused(Exception):
    """An OAuth error (RFC 6749, section 5.2). code: ``invalid_grant`` and so on; why: a sentence; status:
    HTTP's; headers: of the answer."""

    def __init__(self, code: str, why: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{code}: {why}")
        self.code, self.why, self.status, self.headers = code, why, status, headers or {}

    @property
    def body(self) -> JsonObject:
        """The answer's."""
        return {"error": self.code, "error_description": self.why}


class ShownToPerson(Exception):
    """What is wrong with a request for authorization that may not be sent back: whom to send it to is in
    doubt (RFC 6749, section 4.1.2.1)."""
