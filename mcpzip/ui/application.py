"""The application: admits a request, finds who sent it, and hands it to its page.

The order of the checks: where the request comes from (`admission`), then the session, then, for a POST, the
form's token. Nothing of a page runs before all of them.
"""

from collections.abc import Callable, Mapping

from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.ui.admission import SECURITY_HEADERS, TOO_LARGE, refusal_of
from mcpzip.ui.answering import Answering, answer_at, form_of, static_answer
from mcpzip.ui.changes import Changes, digest_of, stream_budget
from mcpzip.ui.limits import STREAMS
from mcpzip.ui.page import HTML, Answer, TooManyFieldsError, Visit, redirect, refused
from mcpzip.ui.pages import ROUTES
from mcpzip.ui.rendering import render
from mcpzip.ui.sign_in import BrowserSession, SignIn, cookie, cookie_name
from mcpzip.ui.sources import Sources


class PageApplication(Answering):
    """Serves the pages at ``port`` to who knows the token of ``sign_in``."""

    too_large: Refusal = TOO_LARGE
    headers = SECURITY_HEADERS

    def __init__(
        self,
        sources: Sources,
        sign_in: SignIn,
        port: int,
        warn: Callable[[str], None],
        signed_in: Callable[[], None] = lambda: None,
    ) -> None:
        """warn: is told of our defects. signed_in: called when a browser has shown the token."""
        super().__init__(warn)
        self._sources, self._sign_in, self._port = sources, sign_in, port
        self._signed_in = signed_in
        self._changes = Changes(lambda: digest_of(sources), stream_budget(), before_news=sources.open_ahead)

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """See `server.http.connection.Application`."""
        request.is_anonymous = self._session_of(request) is None
        return refusal_of(request, self._port)

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request whose body is complete."""
        session = self._session_of(request)
        path, root = request.raw_path, self._sign_in.root
        if path.startswith("/static/") and request.method != "POST":
            self.send(response, static_answer(path.removeprefix("/static/")))
        elif path == "/sign-in" and request.method == "POST":
            self.send(response, self._begin(request))
        elif session is None or not path.startswith(root + "/"):
            self.send(response, _sign_in_page(401))
        elif path == f"{root}/events" and request.method == "GET":
            self._stream(response)
        else:
            self.start(self._answer(request, session, path.removeprefix(root)), response)

    async def close(self) -> None:
        """Ends what is under way."""
        await self._changes.close()
        await super().close()

    # --- signing in

    def _session_of(self, request: HttpRequest) -> BrowserSession | None:
        return self._sign_in.session_of(request.header("cookie"), cookie_name(self._port))

    def _begin(self, request: HttpRequest) -> Answer:
        try:
            session = self._sign_in.exchange(form_of(request).get("token", "").strip())
        except TooManyFieldsError:
            session = None
        if session is None:
            return _sign_in_page(403, wrong=True)
        self._signed_in()
        root = self._sign_in.root
        to = redirect(f"{root}/")
        return Answer(
            b"", to.status, (*to.headers, (b"set-cookie", cookie(self._port, session.secret, root)))
        )

    def _end(self, session: BrowserSession) -> Answer:
        self._sign_in.end(session)
        page = _sign_in_page(200)
        return Answer(page.body, 200, (HTML, (b"set-cookie", cookie(self._port, "", self._sign_in.root))))

    # --- pages

    async def _answer(self, request: HttpRequest, session: BrowserSession, path: str) -> Answer:
        """The page at ``path``, which is below the root."""
        root = self._sign_in.root

        def visit(name: str, fields: Mapping[str, str], is_post: bool) -> Visit:
            return Visit(self._sources, session, root, name, fields, is_post)

        return await answer_at(path, request, session, root, ROUTES, visit, lambda: self._end(session))

    def _stream(self, response: HttpResponse) -> None:
        if len(self._changes) >= STREAMS:
            self.send(response, refused(503, "Too many tabs", "Close a tab of this page."))
        else:
            self._changes.tell(response)


def _sign_in_page(status: int, *, wrong: bool = False) -> Answer:
    return Answer(render("sign_in.html", wrong=wrong), status)
