"""The checks that every HTTP request passes before any byte of its body is accepted."""

import hmac
from typing import TYPE_CHECKING

from mcpzip.server.http.access import Access
from mcpzip.server.http.header_validation import unsupported_version
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.request import EVENT_STREAM, HEALTH_PATH, JSON, PATH, HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.wire import Era

if TYPE_CHECKING:
    from mcpzip.server.http.people import People

_UNKNOWN_PATH = Refusal(404, f"There is nothing here; mcpzip serves {PATH}.")
# A proxy that used the other length has let in what is inside the body (RFC 9112, 6.3).
_TWO_LENGTHS = Refusal(400, "A request has a Content-Length or a Transfer-Encoding, not both.")
_HEALTH_BY_GET = Refusal(405, "Health is asked for by GET, without a body.", ((b"allow", b"GET"),))
_DOCUMENT_BY_GET = Refusal(405, "This is read by GET, without a body.", ((b"allow", b"GET"),))
_NOT_JSON = Refusal(400, f"A POST carries Content-Type: {JSON}.")
_WRONG_HOST = Refusal(421, "mcpzip is not reached by this Host; name it with --allow-host.")
_WRONG_ORIGIN = Refusal(403, "Web pages of this origin are not let in; name it with --allow-origin.")
_NO_TOKEN = Refusal(
    401,
    "A bearer token is required: send it as Authorization: Bearer TOKEN.",
    ((b"www-authenticate", b'Bearer realm="mcpzip"'),),
)
_WRONG_TOKEN = Refusal(
    401,
    "This bearer token is not the one that is required.",
    ((b"www-authenticate", b'Bearer realm="mcpzip", error="invalid_token"'),),
)
_POST_ONLY = Refusal(405, "This version of the protocol is spoken by POST only.", ((b"allow", b"POST"),))
_UNSUPPORTED_VERSION = Refusal(400, "This MCP-Protocol-Version is not served.")
_METHOD_NOT_ALLOWED = Refusal(
    405, "MCP is spoken by GET, POST and DELETE.", ((b"allow", b"GET, POST, DELETE"),)
)
_POST_NOT_ACCEPTABLE = Refusal(406, f"A POST says Accept: {JSON}, {EVENT_STREAM}.")
_GET_NOT_ACCEPTABLE = Refusal(406, f"A GET says Accept: {EVENT_STREAM}.")
_BODY_WITHOUT_POST = Refusal(400, "Only a POST has a body.")


class Middleware:
    """Checks the head of each request. too_large: the refusal of a body that turns out too large."""

    def __init__(self, access: Access, limits: Limits, people: "People | None" = None) -> None:
        """people: who may ask; None where nobody signs in."""
        self._access, self._limits, self._people = access, limits, people
        self.too_large = Refusal(413, f"The body is larger than {limits.body:,} bytes.")

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """Why ``request`` is refused, judging by its head; None when its body may come. The order matters:
        host, origin and token come before anything that depends on the protocol version.
        """
        method, headers, access = request.method, request.headers, self._access
        if page := self._page_origin(request):
            response.headers += (
                (b"access-control-allow-origin", page.encode("latin-1")),
                (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
                (b"vary", b"origin"),
            )
            if method == "OPTIONS" and not request.has_body and self._is_for_pages(request.path):
                request.is_preflight = True
                return None
        if request.path != PATH:
            if self._people is not None and (found := self._people.documents.get(request.path)) is not None:
                request.document = found
                return None if method == "GET" and not request.has_body else _DOCUMENT_BY_GET
            if request.path != HEALTH_PATH:
                return _UNKNOWN_PATH
            if method != "GET" or request.has_body:
                return _HEALTH_BY_GET
            request.is_health_check = True
            return None
        if request.is_chunked and "content-length" in headers:
            return _TWO_LENGTHS
        if repeated := request.repeated_header:
            return Refusal(400, f"A request has one {repeated} header, not several.")
        if method == "POST" and not request.is_json:
            return _NOT_JSON
        if not access.allows_host(request.host):
            return _WRONG_HOST
        if (origin := request.header("origin")) and not access.allows_origin(origin):
            return _WRONG_ORIGIN
        if access.token is not None and (refusal := self._unauthorized(headers.get("authorization"))):
            return refusal
        if self._people is not None and (refusal := self._people.admit(request)):
            return refusal
        if request.era is Era.MODERN and method != "POST":
            return _UNSUPPORTED_VERSION if unsupported_version(request) else _POST_ONLY
        if method not in ("GET", "POST", "DELETE"):
            return _METHOD_NOT_ALLOWED
        if method == "POST" and not request.accepts(JSON, EVENT_STREAM):
            return _POST_NOT_ACCEPTABLE
        if method == "GET" and not request.accepts(EVENT_STREAM):
            return _GET_NOT_ACCEPTABLE
        if method != "POST" and request.has_body:
            return _BODY_WITHOUT_POST
        declared = request.header("content-length") or "0"
        return self.too_large if declared.isdecimal() and int(declared) > self._limits.body else None

    def _unauthorized(self, given: list[str] | None) -> Refusal | None:
        if not given:
            return _NO_TOKEN
        scheme, _, token = given[0].encode("latin-1").partition(b" ")
        right = hmac.compare_digest(token.strip(), self._access.token or b"")
        return None if right and scheme.lower() == b"bearer" and len(given) == 1 else _WRONG_TOKEN

    def _is_for_pages(self, path: str) -> bool:
        return path == PATH or (self._people is not None and path in self._people.documents)

    def _page_origin(self, request: HttpRequest) -> str | None:
        """The origin of a web page that may read the response (CORS); None for any other client."""
        origin = request.header("origin")
        if origin is None or origin.lower() not in self._access.pages or request.repeated_header:
            return None
        return origin


def answer_health_check(response: HttpResponse) -> None:
    """Answers a load balancer or a service manager, which has no token and asks by any Host: it learns only
    that mcpzip runs.
    """
    response.json(b'{"status":"ok"}', 200, (b"cache-control", b"no-store"))


def answer_document(document: bytes, response: HttpResponse) -> None:
    """Answers whoever wants to know how to sign in."""
    response.json(document, 200, (b"cache-control", b"max-age=300"))


def answer_preflight(request: HttpRequest, response: HttpResponse) -> None:
    """Answers a preflight (Fetch standard, "CORS-preflight"). It carries no token, so it learns only that
    requests may come.
    """
    headers = request.header("access-control-request-headers") or "content-type"
    response.empty(
        204,
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", headers.encode("latin-1")),
        (b"access-control-max-age", b"600"),
    )
