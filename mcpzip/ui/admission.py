"""Which requests reach a page, judging by their heads (pure).

Any web site can send requests to loopback, under a name of its own if its DNS says so (DNS rebinding). So the
``Host`` must be the address that we listen at, and whatever a browser says about where a request comes from
must name the page itself. Only a navigation may come from elsewhere: it is how a browser opens the page, and
it carries no cookie from there (``SameSite=Strict``), so it gets no more than the form to sign in.
"""

from collections.abc import Sequence

from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import Header, Refusal
from mcpzip.ui.limits import LIMITS

SECURITY_HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: with it browsers send `Origin: null` with the page's own forms. Nothing leaves the
    # origin.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
)
"""What every response has."""

METHODS = ("GET", "HEAD", "POST")
_NAMES = ("127.0.0.1", "localhost")
_OWN = ("same-origin", "none")
TOO_LARGE = Refusal(413, f"A request may have {LIMITS.body:,} bytes at most.")


def refusal_of(request: HttpRequest, port: int) -> Refusal | None:
    """Why ``request`` is refused by the server at ``port`` of loopback; None if it is not."""
    return refusal_at(request, [f"http://{name}:{port}" for name in _NAMES])


def refusal_at(request: HttpRequest, origins: Sequence[str], most: int = LIMITS.body) -> Refusal | None:
    """Why ``request`` is refused by the server at ``origins``, of which the first is told; None if it is not.
    most: bytes of a body.
    """
    origin_of = {one.partition("://")[2]: one for one in origins}
    if (repeated := request.repeated_header) is not None:
        return Refusal(400, f"The header {repeated} occurs more than once.")
    own = origin_of.get(request.host.lower())
    if own is None:
        return Refusal(421, f"This page is at {origins[0]}/ only.")
    if request.method not in METHODS:
        return Refusal(405, "Only GET, HEAD and POST are known here.", ((b"allow", b"GET, HEAD, POST"),))
    origin, site = request.header("origin"), request.header("sec-fetch-site")
    foreign = Refusal(403, "This request comes from another page.")
    if origin is not None and origin.lower() != own:
        return foreign
    if request.method == "POST" and origin is None:
        return foreign
    if site is not None and site not in _OWN and not _is_navigation(request):
        return foreign
    length = request.header("content-length") or "0"
    return TOO_LARGE if length.isdecimal() and int(length) > most else None


def _is_navigation(request: HttpRequest) -> bool:
    """Whether a browser opens a page in a tab, which a link elsewhere may have told it to."""
    mode, destination = request.header("sec-fetch-mode"), request.header("sec-fetch-dest")
    return (request.method, mode, destination) == ("GET", "navigate", "document")
