"""What applications of pages share: the answers under way, routes, forms and our own files."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from importlib.resources import files
from typing import TypeVar

from mcpzip.model import sanitize
from mcpzip.model.errors import McpzipError
from mcpzip.model.redaction import redact
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse
from mcpzip.ui.page import Answer, TooManyFieldsError, fields_of, refused
from mcpzip.ui.rendering import from_path_part
from mcpzip.ui.sign_in import BrowserSession

_STATIC: Mapping[str, bytes] = {
    "style.css": b"text/css; charset=utf-8",
    "script.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}
"""The files that a browser gets without a sign-in, which say nothing of anybody."""
_FORM = "application/x-www-form-urlencoded"
H = TypeVar("H")
V = TypeVar("V")


class Answering:
    """The answers that are under way. warn: is told of our defects."""

    def __init__(self, warn: Callable[[str], None], *, tells_defects: bool = True) -> None:
        """tells_defects: whether the page itself says what a defect is."""
        self.warn, self._tells = warn, tells_defects
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self,
        work: Coroutine[object, None, Answer],
        response: HttpResponse,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """Sends what ``work`` returns. over: called when it has ended."""

        async def run() -> None:
            self.send(response, await work)

        task = asyncio.create_task(run(), name="page")
        self._tasks.add(task)

        def done(ended: "asyncio.Task[None]") -> None:
            self._tasks.discard(ended)
            over()
            if not ended.cancelled() and (defect := ended.exception()) is not None:
                said = f"{type(defect).__name__}: {defect}"
                self.warn(f"a page failed: {said}")
                shown = said if self._tells else "The log of mcpzip says why."
                self.send(response, refused(500, "mcpzip failed", shown))

        task.add_done_callback(done)
        response.on_end = task.cancel  # a closed tab cancels the call that it waited for

    def send(self, response: HttpResponse, answer: Answer) -> None:
        """Sends ``answer``, if it is still waited for."""
        if not response.ended:
            response.on_end = lambda: None
            response.send(answer.status, answer.body, *answer.headers)

    async def close(self) -> None:
        """Ends what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def answer_at(
    path: str,
    request: HttpRequest,
    session: BrowserSession,
    root: str,
    routes: Mapping[tuple[str, str], Callable[[V], Awaitable[Answer]]],
    visit: Callable[[str, Mapping[str, str], bool], V],
    sign_out: Callable[[], Answer],
) -> Answer:
    """The page at ``path`` below ``root``, or what a form of it does. A form's token is checked before
    anything else is done with the form.

    visit: makes what a handler of ``routes`` is given: of the part of the path that a page leaves open, the
    fields, and whether a form was sent.
    """
    is_post = request.method == "POST"
    try:
        fields = form_of(request) if is_post else fields_of(request.query)
    except TooManyFieldsError as error:
        return refused(400, "This form is too large", str(error), root)
    if is_post and not session.allows(fields.get("form_token", "")):
        text = "The form is not of this page, or from before the last sign-in. Load the page again."
        return refused(403, "This form is not valid", text, root)
    if is_post and path == "/sign-out":
        return sign_out()
    found = route(routes, "POST" if is_post else "GET", path)
    if found is None:
        return refused(404, "There is no such page", "The address is wrong.", root)
    handler, name = found
    try:
        return await handler(visit(name, fields, is_post))
    except McpzipError as error:
        return refused(503, "This can't be shown now", sanitize.lines(redact(str(error))), root)


def route(routes: Mapping[tuple[str, str], H], method: str, path: str) -> tuple[H, str] | None:
    """The handler of a path, and what stands in it for ``*``. routes: as `pages.ROUTES`."""
    parts = path.split("/")
    for (known, pattern), handler in routes.items():
        wanted = pattern.split("/")
        if known != method or len(wanted) != len(parts):
            continue
        if all(one in ("*", other) for one, other in zip(wanted, parts, strict=True)):
            names = [other for one, other in zip(wanted, parts, strict=True) if one == "*"]
            return handler, from_path_part(names[0]) if names else ""
    return None


def form_of(request: HttpRequest) -> dict[str, str]:
    """The fields of a form; none for a body of another kind. Raises TooManyFieldsError."""
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    return fields_of(request.body.decode("utf-8", "replace")) if kind == _FORM else {}


def static_answer(name: str) -> Answer:
    """One of our files."""
    kind = _STATIC.get(name)
    if kind is None:
        return refused(404, "There is no such file", "It is none of this page's.")
    return Answer(static_file(name), 200, ((b"content-type", kind),))


@cache
def static_file(name: str) -> bytes:
    """The content of one of our files."""
    return (files("mcpzip.ui") / "static" / name).read_bytes()
