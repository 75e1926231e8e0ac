"""A server over HTTP that lists, for each bearer token, what its person has, and answers with who that is."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpzip_fakes.record import Writer
from mcpzip_fakes.serving import Threaded, listen
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mcpzip.auth.grant import Grant
from mcpzip.auth.store import PersonStore, open_store
from mcpzip.config.schema import Config
from mcpzip.model.principal import Principal

Json = dict[str, Any]
_SCHEMA = {"type": "object"}


def token_of(who: Principal) -> str:
    """That of ``who`` at the server."""
    return f"token-of-{who.subject}-0123456789"


class PersonalUpstream:
    """words: by person, what everything of theirs has in its name. said: by person, a description of a tool.
    asked: each method and who asked it. sessions: how many each person has begun.
    params: of all requests.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words, self.said, self.asked = dict(words), dict[str, str](), list[tuple[str, str]]()
        self.sessions, self.params = Counter[str](), list[Json]()
        self.url = ""
        self._streams: dict[str, list[asyncio.Queue[bytes]]] = defaultdict(list)
        self._loop: asyncio.AbstractEventLoop | None = None

    def tell(self, who: str, method: str, **params: object) -> None:
        """Sends a notification on the streams of this person."""
        message = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
        assert self._loop is not None
        for stream in self._streams[who]:
            self._loop.call_soon_threadsafe(stream.put_nowait, f"data: {message}\n\n".encode())

    def _stream(self, who: str) -> Response:
        waiting = asyncio.Queue[bytes]()
        self._loop = asyncio.get_running_loop()
        self._streams[who].append(waiting)

        async def events() -> AsyncIterator[bytes]:
            while True:
                yield await waiting.get()

        return StreamingResponse(events(), media_type="text/event-stream")

    def has_stream(self, who: str) -> bool:
        """Whether a notification can be sent to this person."""
        return bool(self._streams[who])

    async def answer(self, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        who = next((name for name in self.words if given == f"Bearer token-of-{name}-0123456789"), "")
        if request.method == "GET" and who:
            return self._stream(who)
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        method, params = message.get("method", ""), message.get("params", {})
        self.asked.append((method, who))
        self.params.append(params)
        if not who:
            return JSONResponse({"error": "invalid_token"}, 401, {"WWW-Authenticate": "Bearer"})
        if "id" not in message:
            return Response(status_code=202)
        result = self._result(method, params, self.words[who], who)
        said: Json = {"jsonrpc": "2.0", "id": message["id"]}
        said |= {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
        session = {"Mcp-Session-Id": f"session-of-{who}"} if method == "initialize" else None
        self.sessions[who] += method == "initialize"
        return JSONResponse(said, headers=session)

    def _result(self, method: str, params: Json, word: str, who: str) -> Json | None:
        match method:
            case "initialize":
                capabilities: Json = {"tools": {"listChanged": True}, "prompts": {}}
                capabilities["resources"] = {"subscribe": True}
                info = {"name": "personal", "version": "1"}
                version = params.get("protocolVersion")
                return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            case "tools/list":
                own = {"name": f"find_{word}", "description": f"Find a {word} in the archive."}
                about = self.said.get(who, f"Says that you are the keeper of the {word}.")
                both = {"name": "whoami", "description": about}
                return {"tools": [{**each, "inputSchema": _SCHEMA} for each in (own, both)]}
            case "prompts/list":
                return {"prompts": [{"name": f"{word}_review"}]}
            case "resources/list":
                return {"resources": [{"uri": f"{word}://today", "name": word}]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": f"{word}://{{day}}", "name": word}]}
            case "tools/call":
                return {"content": [{"type": "text", "text": f"for {who}: {word}"}]}
            case "prompts/get":
                return {"messages": [{"role": "user", "content": {"type": "text", "text": word}}]}
            case "resources/read":
                return {"contents": [{"uri": params.get("uri"), "text": word}]}
            case "completion/complete":
                return {"completion": {"values": [word]}}
            case "resources/subscribe" | "resources/unsubscribe" | "ping":
                return {}
        return None


@contextmanager
def personal_upstream(**words: str) -> Iterator[PersonalUpstream]:
    """One that runs. words: by person."""
    served = PersonalUpstream(words)
    bound, origin = listen("", 0)
    served.url = f"{origin}/mcp"
    app = Starlette(routes=[Route("/mcp", served.answer, methods=["GET", "POST", "DELETE"])])
    threaded = Threaded([(app, bound)], Writer(None), "personal upstream")
    try:
        yield served
    finally:
        threaded.stop()


def grant_at(url: str, who: Principal) -> Grant:
    """What ``who`` is granted there."""
    return Grant(url=url, person=who.id, access_token=token_of(who), resource=url, signed_in_at=1.0)


def signed_in(folder: Path, url: str, who: Principal, at: float = 1.0, **members: object) -> None:
    """Keeps a sign-in of ``who`` at ``url`` beside the config in ``folder``. members: replace some of it."""
    store = open_store(Config(path=str(folder / "config.json"), servers={}), print)
    PersonStore(store, who.id).save(replace(grant_at(url, who), signed_in_at=at, **members))


def signed_out(folder: Path, url: str, who: Principal) -> None:
    """Removes it."""
    store = open_store(Config(path=str(folder / "config.json"), servers={}), print)
    PersonStore(store, who.id).remove(url)
