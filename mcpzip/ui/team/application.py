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
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.model.principal import PrincipalId
from mcpzip.proxy.person_upstreams import SIGN_INS
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.ui.admission import SECURITY_HEADERS, refusal_at
from mcpzip.ui.answering import Answering, answer_at, form_of, static_answer
from mcpzip.ui.page import HTML, Answer, PersonVisit, TooManyFieldsError, redirect, refused
from mcpzip.ui.rendering import render
from mcpzip.ui.team import pages, sign_in_pages
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.issuer_sign_in import BEGIN, CALLBACK, IssuerSignIn, SignInError
from mcpzip.ui.team.limits import LIMITS, PAGES_OF_PERSON
from mcpzip.ui.team.person import CallNumbers, Person
from mcpzip.ui.team.sessions import PersonSession, Sessions
from mcpzip.ui.team.sign_in_pages import TeamVisit
from mcpzip.ui.team.streams import Streams
from mcpzip.ui.team.upstream_sign_ins import CALLBACK as UPSTREAM_CALLBACK
from mcpzip.ui.team.upstream_sign_ins import UpstreamSignIns

_SECURE_ROOT, _SECURE_COOKIE = "/page", "__Host-mcpzip"
_WRONG_KEY = "This API key is not valid. Whoever runs mcpzip can make you another one."
_AGAIN = "again"
_ROUTES = {**pages.ROUTES, **sign_in_pages.ROUTES}
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")


class TeamApplication(Answering):
    """Serves the pages of ``proxy`` at ``origin`` to who has one of ``keys``, or signs in at the issuer."""

    too_large = Refusal(413, f"A request may have {LIMITS.body:,} bytes at most.")

    def __init__(
        self,
        proxy: Proxy,
        keys: ApiKeys | None,
        origin: str,
        warn: Callable[[str], None],
        issuer: IssuerSignIn | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """keys, issuer: None where nobody signs in so. origin: by which browsers reach it. warn: is told of
        our defects. clock: seconds.
        """
        super().__init__(warn, tells_defects=False)
        self._proxy, self._origin = proxy, origin
        self._sessions, self._numbers = Sessions(keys, clock), CallNumbers()
        self._streams = Streams(proxy, self._sessions)
        self._sign_ins = UpstreamSignIns(proxy, self._sessions, origin, warn)
        self._has_keys, self._issuer = keys is not None, issuer
        self._under_way: Counter[PrincipalId] = Counter()
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
        elif self._issuer is not None and path in (BEGIN, CALLBACK) and request.method == "GET":
            self._sign_in_at(self._issuer, request, response)
        elif path == UPSTREAM_CALLBACK and request.method == "GET":
            self.start(self._from_upstream(request), response)
        elif path == SIGN_INS and request.method == "GET":
            self.send(response, self._sign_ins_page(request, session))
        elif session is not None and path == "/" and request.method != "POST":
            self.send(response, redirect(f"{root}/"))
        elif session is None or not path.startswith(root + "/"):
            self.send(response, self._sign_in_page(401))
        elif path == f"{root}/events" and request.method == "GET":
            self._streams.tell(session, response)
        elif self._under_way[session.principal.id] >= PAGES_OF_PERSON:
            text = f"{PAGES_OF_PERSON} pages or calls of yours are under way already. Wait for one of them."
            self.send(response, refused(503, "This is too much at once", text, root))
        else:
            self._under_way[session.principal.id] += 1
            self.start(
                self._answer(request, session, path.removeprefix(root)),
                response,
                lambda: self._left(session.principal.id),
            )

    async def close(self) -> None:
        """See `Answering.close`."""
        await self._streams.close()
        await self._sign_ins.close()
        await super().close()
        if self._issuer is not None:
            await self._issuer.close()

    def _left(self, person: PrincipalId) -> None:
        self._under_way[person] -= 1
        if not self._under_way[person]:
            del self._under_way[person]

    # --- signing in

    def _session_of(self, request: HttpRequest) -> PersonSession | None:
        # What a page does by itself because of news is no sign that anybody sits there.
        is_of_script = request.header("sec-fetch-dest") == "empty"
        by_person = not is_of_script and request.raw_path != f"{self._root}/events"
        return self._sessions.of(request.header("cookie"), self._cookie_name, by_person=by_person)

    def _begin(self, request: HttpRequest) -> Answer:
        try:
            session = self._sessions.begin(form_of(request).get("key", "").strip())
        except (TooManyFieldsError, TokenError):
            return self._sign_in_page(403, _WRONG_KEY)
        if (before := self._session_of(request)) is not None:
            self._sessions.end(before)
        to = redirect(f"{self._root}/")
        return Answer(b"", to.status, (*to.headers, (b"set-cookie", self._cookie(session.secret))))

    def _sign_in_at(self, issuer: IssuerSignIn, request: HttpRequest, response: HttpResponse) -> None:
        work = self._to_issuer(issuer) if request.raw_path == BEGIN else self._from_issuer(issuer, request)
        self.start(work, response)

    async def _to_issuer(self, issuer: IssuerSignIn) -> Answer:
        try:
            url, cookie = await issuer.begin()
        except SignInError as error:
            return self._sign_in_page(503, str(error))
        to = redirect(url)
        return Answer(b"", to.status, (*to.headers, (b"set-cookie", cookie)))

    async def _from_issuer(self, issuer: IssuerSignIn, request: HttpRequest) -> Answer:
        over = (b"set-cookie", issuer.end_of_cookie)
        try:
            found = await issuer.finish(request.query, request.header("cookie"))
        except SignInError as error:
            page = self._sign_in_page(503 if error.is_passing else 403, str(error))
            return Answer(page.body, page.status, (*page.headers, *([over] if error.is_answered else ())))
        session = self._sessions.begin_at_issuer(found)
        welcome = render("team_signed_in.html", root=self._root, name=session.name)
        return Answer(welcome, 200, (HTML, over, (b"set-cookie", self._cookie(session.secret))))

    # --- signing in to servers

    def _sign_ins_page(self, request: HttpRequest, session: PersonSession | None) -> Answer:
        """Where the link leads that errors name, which says nothing of anybody."""
        if session is not None:
            return redirect(f"{self._root}{SIGN_INS}")
        if (
            self._is_secure and _AGAIN not in request.query
        ):  # a link elsewhere brings no cookie, and this one does
            return Answer(render("team_again.html", url=f"{SIGN_INS}?{_AGAIN}"))
        return self._sign_in_page(401)

    async def _from_upstream(self, request: HttpRequest) -> Answer:
        try:
            server = await self._sign_ins.finish(request.query, request.header("cookie"))
        except SignInError as error:
            back = (
                f"{self._root if error.is_answered else ''}{SIGN_INS}"  # else anybody's browser may have come
            )
            page = render("team_sign_in_over.html", problem=str(error), server="", back=back)
            return Answer(page, 503 if error.is_passing else 403)
        back = f"{self._root}{SIGN_INS}"
        return Answer(render("team_sign_in_over.html", problem="", server=server, back=back))

    def _end(self, session: PersonSession, problem: str = "") -> Answer:
        self._sessions.end(session)
        page = self._sign_in_page(401 if problem else 200, problem)
        return Answer(page.body, page.status, (HTML, (b"set-cookie", self._cookie(""))))

    def _sign_in_page(self, status: int, problem: str = "") -> Answer:
        """problem: why nobody is signed in; "" for no reason."""
        issuer = "" if self._issuer is None else self._issuer.issuer
        page = render(
            "team_sign_in.html", problem=problem, has_keys=self._has_keys, issuer=issuer, begin=BEGIN
        )
        return Answer(page, status)

    def _cookie(self, value: str) -> bytes:
        """The header ``Set-Cookie`` for a session; "" ends it."""
        place = "Path=/; Secure" if self._is_secure else f"Path={self._root}/"
        ends = "" if value else "; Max-Age=0"
        return f"{self._cookie_name}={value}; {place}; HttpOnly; SameSite=Strict{ends}".encode()

    # --- pages

    async def _answer(self, request: HttpRequest, session: PersonSession, path: str) -> Answer:
        """The page at ``path``, which is below the root."""
        if isinstance(session.credential, IssuerSession) and path != "/sign-out":
            try:
                session = session.of(await session.credential.check())
            except TokenError:
                return self._end(session, "Your sign-in has ended. Sign in again.")
            except IssuerUnavailableError as error:
                assert self._issuer is not None, "it has made the session"
                text = str(self._issuer.unavailable(error))
                return refused(503, "Your sign-in can't be checked now", text, self._root)
        person = Person(self._proxy, session.principal, self._numbers)

        def visit(name: str, fields: Mapping[str, str], is_post: bool) -> PersonVisit:
            return TeamVisit(person, session, self._root, name, fields, is_post, sign_ins=self._sign_ins)

        return await answer_at(path, request, session, self._root, _ROUTES, visit, lambda: self._end(session))
