"""The HTTP endpoints of an authorization server, and of a protected MCP server.

The rule: a request is first recorded, then faults are applied, then it is answered. `Authority` decides; here
the decision gets its status and headers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl
from urllib.request import ProxyHandler, build_opener

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth import documents, pages
from mcpzip_fakes.oauth.authority import Authority, AuthRequest
from mcpzip_fakes.oauth.controls import CONTROL, Desk
from mcpzip_fakes.oauth.errors import Refused, ShownToPerson
from mcpzip_fakes.oauth.faults import AuthFault
from mcpzip_fakes.oauth.guard import Guard
from mcpzip_fakes.oauth.lies import elsewhere
from mcpzip_fakes.record import Writer

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_FETCH_SECONDS = 5.0
_MOST_BYTES = 1 << 16

Answerer = Callable[[AuthRequest], Awaitable[Response]]


class AuthSite:
    """The ASGI application of one authorization server, which can be replaced. record: of its requests."""

    def __init__(self, authority: Authority, record: Writer) -> None:
        self.authority = authority
        self._record = record
        self._answers: Mapping[str, tuple[str, Answerer]] = {
            "authorize": ("GET", self._authorize),
            "token": ("POST", self._token),
            "register": ("POST", self._register),
            "revoke": ("POST", self._revoke),
            "introspect": ("POST", self._introspect),
            "jwks": ("GET", self._jwks),
        }

    def serves(self, path: str) -> bool:
        """Whether ``path`` belongs to the authorization server."""
        return documents.WELL_KNOWN in path or path == CONTROL or self._endpoint(path) != ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path == CONTROL:
            await self._controlled(Request(scope, receive), send)
        elif endpoint := self._endpoint(path):
            verb, answer = self._answers[endpoint]
            allowed = (verb, "POST") if endpoint == "authorize" else (verb,)
            await self.exchange(endpoint, allowed, answer, scope, receive, send)
        else:
            await self.exchange("metadata", ("GET",), self._metadata, scope, receive, send)

    def _endpoint(self, path: str) -> str:
        with self.authority.lock:
            name = path.removeprefix(self.authority.told.issuer_path)
            inside = path.startswith(self.authority.told.issuer_path + "/")
        return name[1:] if inside and name[1:] in self._answers else ""

    async def exchange(
        self,
        endpoint: str,
        verbs: tuple[str, ...],
        answer: Answerer,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Record a request to ``endpoint``, apply faults, and answer."""
        seen = await self._note(endpoint, Request(scope, receive))
        with self.authority.lock:
            fault = self.authority.plan.meet(endpoint, seen.grant)
        if fault and fault.kind == "hang":
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        if fault and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        response = _spoilt(fault, seen, scope)
        if response is None and seen.verb not in verbs:
            response = Response(status_code=405, headers={"Allow": ", ".join(verbs)})
        if response is None:
            response = await self._answered(answer, seen)
        self._noted(seen, response)
        await response(scope, receive, _Cut(send) if fault and fault.kind == "cut" else send)

    async def _answered(self, answer: Answerer, seen: AuthRequest) -> Response:
        try:
            return await answer(seen)
        except ShownToPerson as why:
            return HTMLResponse(pages.wrong(str(why)), 400)
        except Refused as refusal:
            headers = {**_NO_STORE, **refusal.headers}
            return JSONResponse(refusal.body, refusal.status, headers=headers)

    async def _note(self, endpoint: str, request: Request) -> AuthRequest:
        try:
            body = await request.body()
        except ClientDisconnect:
            body = b""
        headers = {key.lower(): value for key, value in request.headers.items()}
        seen = AuthRequest(
            endpoint=endpoint,
            verb=request.method,
            path=request.url.path,
            host=headers.get("host", ""),
            headers=headers,
            fields=_fields(request, headers, body),
            time=time.time(),
            clock=self.authority.now(),
        )
        with self.authority.lock:
            self.authority.requests.append(seen)
        told = msgspec.to_builtins(seen)
        self._record.event(
            "auth", {key: told[key] for key in told if key not in ("time", "status", "answer")}
        )
        return seen

    def _noted(self, seen: AuthRequest, response: Response) -> None:
        with self.authority.lock:
            seen.status = response.status_code
            if isinstance(response, JSONResponse):
                seen.answer = msgspec.json.decode(bytes(response.body), type=dict)
        told = {"endpoint": seen.endpoint, "status": seen.status, "answer": seen.answer}
        self._record.event("auth-answer", {key: value for key, value in told.items() if value is not None})

    async def _metadata(self, seen: AuthRequest) -> Response:
        with self.authority.lock:
            if seen.path != documents.server_path(self.authority.told):
                return Response("Not found", 404)
            return JSONResponse(documents.of_server(self.authority))

    async def _jwks(self, seen: AuthRequest) -> Response:
        told = self.authority.told
        return JSONResponse({"keys": []} if told.access_tokens == "opaque" else self.authority.signer.key_set)

    async def _introspect(self, seen: AuthRequest) -> Response:
        authorization = seen.headers.get("authorization", "")
        return JSONResponse(self.authority.introspect(_form(seen), authorization), headers=_NO_STORE)

    async def _authorize(self, seen: AuthRequest) -> Response:
        fields = _texts(seen.fields)
        if seen.verb == "POST":
            allowed = fields.get("decision") == "allow"
            return RedirectResponse(self.authority.decide(fields.get("ticket", ""), allowed), 303)
        await self._fetch(fields.get("client_id", ""))
        asked = self.authority.ask(fields)
        if isinstance(asked, str):
            return RedirectResponse(asked, 302)
        told = self.authority.told
        if told.approve == "page":
            page = pages.decide(
                seen.path,
                self.authority.wait_for_person(asked),
                client=asked.client,
                resource=asked.resource,
                scope=asked.scope,
                redirect_uri=asked.redirect_uri,
            )
            return HTMLResponse(page, headers={**_NO_STORE, "X-Frame-Options": "DENY"})
        decided = self.authority.allow(asked) if told.approve == "auto" else self.authority.deny(asked)
        return RedirectResponse(decided, 302, headers=_NO_STORE)

    async def _token(self, seen: AuthRequest) -> Response:
        form = _form(seen)
        await self._fetch(form.get("client_id", ""))
        return JSONResponse(
            self.authority.token(form, seen.headers.get("authorization", "")), headers=_NO_STORE
        )

    async def _register(self, seen: AuthRequest) -> Response:
        with self.authority.lock:
            if not self.authority.told.registration:
                return Response("Not found", 404)
            return JSONResponse(self.authority.clients.register(seen.fields), 201, headers=_NO_STORE)

    async def _revoke(self, seen: AuthRequest) -> Response:
        if not self.authority.told.revocation:
            return Response("Not found", 404)
        self.authority.revoke(_form(seen), seen.headers.get("authorization", ""))
        return Response(status_code=200, headers=_NO_STORE)

    async def _fetch(self, id: str) -> None:
        """Fetch the metadata document of a client, from loopback only."""
        with self.authority.lock:
            clients = self.authority.clients
            if not clients.missing(id):
                return
        try:
            document = msgspec.json.decode(await asyncio.to_thread(_read, id), type=dict)
        except (OSError, ValueError) as error:
            raise ShownToPerson(f"The client's document {id} can't be had: {error}") from error
        with self.authority.lock:
            clients.documents[id] = document

    async def _controlled(self, request: Request, send: Send) -> None:
        """A command of a test. Web pages can't send one, because a browser allows this content type only
        after a
        CORS preflight."""
        if request.headers.get("content-type") != "application/json" or "origin" in request.headers:
            response = Response("this is for tests: see docs/fakes.md", 403)
        else:
            status, body = Desk(self.authority).answer(await request.body())
            response = Response(body, status, media_type="application/json")
        await response(request.scope, request.receive, send)


class ProtectedSite:
    """The ASGI application of a protected MCP server: its metadata, its authorization server if that has the
    same origin, and ``inner``, the MCP server, which calls the guard."""

    def __init__(self, inner: ASGIApp, guard: Guard, auth: AuthSite, *, same_origin: bool) -> None:
        self._inner, self._guard, self._auth, self._same_origin = inner, guard, auth, same_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        path = scope.get("path", "")
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
        elif documents.about_resource(path):
            await self._auth.exchange("resource", ("GET",), self._resource, scope, receive, send)
        elif path == CONTROL or (self._same_origin and self._auth.serves(path)):
            await self._auth(scope, receive, send)
        elif path.startswith(documents.WELL_KNOWN):
            await self._auth.exchange("metadata", ("GET",), self._nothing, scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    async def _resource(self, seen: AuthRequest) -> Response:
        if seen.path != self._guard.metadata_path:
            return Response("Not found", 404)
        return JSONResponse(self._guard.metadata())

    async def _nothing(self, seen: AuthRequest) -> Response:
        return Response("Not found", 404)


class _Cut:
    """``send`` that announces a whole body and sends half of it; the HTTP server then closes."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            body = message.get("body", b"")
            message = {**message, "body": body[: len(body) // 2], "more_body": True}
        await self._send(message)


def _spoilt(fault: AuthFault | None, seen: AuthRequest, scope: Scope) -> Response | None:
    """The answer of a fault instead of the server's; None if it has none."""
    match fault.kind if fault else "":
        case "status":
            assert fault
            after = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            return Response(f"status {fault.code}", fault.code, headers=after)
        case "error":
            assert fault
            return JSONResponse(Refused(fault.error, "so it was told").body, fault.code, headers=_NO_STORE)
        case "garbage":
            return Response("<html>Welcome</html>", 200, media_type="application/json")
        case "shape":
            return JSONResponse({"welcome": True})
        case "redirect" if seen.host.startswith("127.0.0.1:"):
            assert fault
            query = scope["query_string"].decode("latin-1")
            there = elsewhere(f"http://{seen.host}{seen.path}{'?' if query else ''}{query}")
            return Response(status_code=fault.code, headers={"Location": there})
    return None


def _fields(request: Request, headers: Mapping[str, str], body: bytes) -> JsonObject:
    """The fields of a request, from its query or its body; a repeated key is a list."""
    if request.method == "GET":
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
    elif headers.get("content-type", "").startswith("application/json"):
        try:
            return dict(msgspec.json.decode(body, type=dict))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
    else:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    found: JsonObject = {}
    for key, value in pairs:
        found[key] = [found[key], value] if key in found else value
    return found


def _texts(fields: JsonObject) -> dict[str, str]:
    """The fields of a form. Raises Refused if one is repeated (RFC 6749, section 3.1)."""
    for key, value in fields.items():
        if not isinstance(value, str):
            raise Refused("invalid_request", f"{key} is not one text")
    return {key: str(value) for key, value in fields.items()}


def _form(seen: AuthRequest) -> dict[str, str]:
    if not seen.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Refused("invalid_request", "this takes application/x-www-form-urlencoded")
    return _texts(seen.fields)


def _read(url: str) -> bytes:
    with build_opener(ProxyHandler({})).open(url, timeout=_FETCH_SECONDS) as answer:
        return bytes(answer.read(_MOST_BYTES))
