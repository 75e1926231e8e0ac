"""The application: admits a request, finds whose it is, and hands it to its page.

The order of the checks: where the request comes from (`admission`), then the session, then, for a POST, the
form's token. Nothing of a page runs before all of them.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from secrets import token_urlsafe
from urllib.parse import urlsplit

from mcpzip.identity.api_keys import ApiKeys
from mcpzip.identity.errors import TokenError
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.ui.admission import SECURITY_HEADERS, refusal_at
from mcpzip.ui.answering import Answering, answer_at, form_of, static_answer
from mcpzip.ui.page import HTML, Answer, PersonVisit, TooManyFieldsError, redirect, refused
from mcpzip.ui.rendering import render
from mcpzip.ui.team.limits import LIMITS, PAGES_OF_PERSON
from mcpzip.ui.team.pages import ROUTES
from mcpzip.ui.team.person import CallNumbers, Person
from mcpzip.ui.team.sessions import PersonSession, Sessions

_SECURE_ROOT, _SECURE_COOKIE = "/page", "__Host-mcpzip"
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")


class TeamApplication(Answering):
    """Serves the pages of ``proxy`` at ``origin`` to who has one of ``keys``."""

    too_large = Refusal(413, f"A request may have {LIMITS.body:,} bytes at most.")

    def __init__(
        self,
        proxy: Proxy,
        keys: ApiKeys,
        origin: str,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """origin: by which browsers reach it. warn: is told of our defects. clock: seconds."""
        super().__init__(warn, tells_defects=False)
        self._proxy, self._origin = proxy, origin
        self._sessions, self._numbers = Sessions(keys, clock), CallNumbers()
        self._under_way: Counter[str] = Counter()
        parts = urlsplit(origin)
        self._is_secure = parts.scheme == "https"
        self.headers = (*SECURITY_HEADERS, _STRICT_TRANSPORT) if self._is_secure else SECURITY_HEADERS
        # Browsers send cookies of loopback to every port there, but only under their path: see `ui.sign_in`.
        self._root = _SECURE_ROOT if self._is_secure else f"/{token_urlsafe(16)}"
        self._cookie_name = _SECURE_COOKIE if self._is_secure else f"mcpzip-page-{parts.port or 80}"

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """See `server.http.connection.Application`."""
        request.is_anonymous = self._session_of(request) is None
        return refusal_at(request, [self._origin], LIMITS.body)

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request whose body is complete."""
        session = self._session_of(request)
        path, root = request.raw_path, self._root
        if path.startswith("/static/") and request.method != "POST":
            self.send(response, static_answer(path.removeprefix("/static/")))
        elif path == "/sign-in" and request.method == "POST":
            self.send(response, self._begin(request))
        elif session is not None and path == "/" and request.method != "POST":
            self.send(response, redirect(f"{root}/"))
        elif session is None or not path.startswith(root + "/"):
            self.send(response, _sign_in_page(401))
        elif self._under_way[session.name] >= PAGES_OF_PERSON:
            text = f"{PAGES_OF_PERSON} pages or calls of yours are under way already. Wait for one of them."
            self.send(response, refused(503, "This is too much at once", text, root))
        else:
            self._under_way[session.name] += 1
            self.start(
                self._answer(request, session, path.removeprefix(root)),
                response,
                lambda: self._left(session.name),
            )

    def _left(self, name: str) -> None:
        self._under_way[name] -= 1
        if not self._under_way[name]:
            del self._under_way[name]

    # --- signing in

    def _session_of(self, request: HttpRequest) -> PersonSession | None:
        return self._sessions.of(request.header("cookie"), self._cookie_name)

    def _begin(self, request: HttpRequest) -> Answer:
        try:
            session = self._sessions.begin(form_of(request).get("key", "").strip())
        except (TooManyFieldsError, TokenError):
            return _sign_in_page(403, wrong=True)
        if (before := self._session_of(request)) is not None:
            self._sessions.end(before)
        to = redirect(f"{self._root}/")
        return Answer(b"", to.status, (*to.headers, (b"set-cookie", self._cookie(session.secret))))

    def _end(self, session: PersonSession) -> Answer:
        self._sessions.end(session)
        return Answer(_sign_in_page(200).body, 200, (HTML, (b"set-cookie", self._cookie(""))))

    def _cookie(self, value: str) -> bytes:
        """The header ``Set-Cookie`` for a session; "" ends it."""
        place = "Path=/; Secure" if self._is_secure else f"Path={self._root}/"
        ends = "" if value else "; Max-Age=0"
        return f"{self._cookie_name}={value}; {place}; HttpOnly; SameSite=Strict{ends}".encode()

    # --- pages

    async def _answer(self, request: HttpRequest, session: PersonSession, path: str) -> Answer:
        """The page at ``path``, which is below the root."""
        person = Person(self._proxy, session.principal, self._numbers)

        def visit(name: str, fields: Mapping[str, str], is_post: bool) -> PersonVisit:
            return PersonVisit(person, session, self._root, name, fields, is_post)

        return await answer_at(path, request, session, self._root, ROUTES, visit, lambda: self._end(session))


def _sign_in_page(status: int, *, wrong: bool = False) -> Answer:
    return Answer(render("team_sign_in.html", wrong=wrong), status)
