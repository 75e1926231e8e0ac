"""Single HTTP requests to a subject, with any head and body, also invalid ones.

The rule: a request has the headers that the specification requires of a client, and what the check adds;
request and response are in a transcript of the stage. Redirects aren't followed.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import httpx

from mcpzip.http.events import events
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    NotAnObject,
    initialize_params,
    join_object,
    quote,
    split_object,
)
from mcpzip.wire.content_coding import CODINGS
from mcpzip_conformance.channel.http import HttpChannel, tls_context
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import CLIENT_INFO, Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.transcript import Transcript

HEADERS: Mapping[str, str] = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}
"""The headers of every POST of a client."""

PING = b'{"jsonrpc":"2.0","id":"conformance-ping","method":"ping"}'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. headers: with names in lower case; kind: the media type; body: of an event stream
    only the message that answers the request, b"" if there is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def reply(self) -> Reply:
        """The JSON-RPC answer in the body; an empty `Reply` if there is none."""
        fields = _members(self.body)
        return Reply(result=fields.get("result"), error=fields.get("error"))

    def __str__(self) -> str:
        return f"HTTP {self.status} {self.body[:200].decode('utf-8', 'replace')}".rstrip()


class RawHttp:
    """Sends HTTP requests to where those of ``player`` go. url: its URL. headers: of every request; None for
    those by which the subject lets a person in."""

    def __init__(self, stage: Stage, player: Player, headers: Mapping[str, str] | None = None) -> None:
        channel = player.client.channel
        assert isinstance(channel, HttpChannel), "a check of HTTP must need the feature http"
        self.url, self._patience = channel.url, stage.patience
        self._headers = dict(stage.credentials() if headers is None else headers)
        self._transcript = Transcript()
        stage.transcripts.append(self._transcript)
        self._client = httpx.AsyncClient(
            headers={"Accept-Encoding": CODINGS},
            timeout=httpx.Timeout(None),
            trust_env=False,
            verify=tls_context(),
            transport=channel.transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def post(
        self,
        body: bytes | AsyncIterator[bytes],
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> Response:
        """POST ``body`` with `HEADERS` and ``headers``. query: behind the URL, with its ``?``. Raises
        NoAnswerError if the response isn't complete in time, and Finding if the connection breaks."""
        return await self._send("POST", body, {**HEADERS, **(headers or {})}, self.url + query)

    async def get(self, headers: Mapping[str, str], path: str = "") -> Response:
        """GET. path: instead of that of the URL. Of an event stream only the head is read."""
        return await self._send("GET", b"", headers, urljoin(self.url, path))

    async def delete(self, headers: Mapping[str, str]) -> Response:
        """DELETE."""
        return await self._send("DELETE", b"", headers, self.url)

    async def session(
        self, version: str = LATEST_LEGACY_VERSION, more: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Open a session of the legacy era. more: headers of its requests. Returns the headers of further
        requests in it, without ``Mcp-Session-Id`` if the subject gave none. Raises Finding if the request is
        refused."""
        opened = await self.post(initialize(version), more)
        agreed = opened.reply.fields.get("protocolVersion")
        if not isinstance(agreed, str):
            raise Finding(f"initialize is answered with {opened}.")
        headers = {"MCP-Protocol-Version": agreed}
        if "mcp-session-id" in opened.headers:
            headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        await self.post(INITIALIZED, {**headers, **(more or {})})
        return headers

    async def _send(
        self, verb: str, body: bytes | AsyncIterator[bytes], headers: Mapping[str, str], url: str
    ) -> Response:
        headers = {**self._headers, **headers}
        told = ", ".join(f"{name}: {value}" for name, value in headers.items() if HEADERS.get(name) != value)
        self._transcript.remark(f"{verb} {told}".rstrip())
        if isinstance(body, bytes) and body:
            self._transcript.add(body, sent=True)
        try:
            async with (
                asyncio.timeout(self._patience),
                self._client.stream(verb, url, content=body, headers=headers) as response,
            ):
                came = dict(response.headers.items())
                self._transcript.remark(
                    f"HTTP {response.status_code} {came.get('content-type', '')}".rstrip()
                )
                got = Response(response.status_code, came, await self._body(verb, body, response))
        except TimeoutError:
            raise NoAnswerError(f"{verb} was not answered within {self._patience:g} s.") from None
        except httpx.HTTPError as error:
            self._transcript.remark(f"the connection broke: {error!r}")
            raise Finding(f"The connection broke before {verb} was answered.") from error
        return got

    async def _body(self, verb: str, asked: bytes | AsyncIterator[bytes], response: httpx.Response) -> bytes:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            body = await response.aread()
            if body:
                self._transcript.add(body, sent=False)
            return body
        id = _members(asked).get("id") if isinstance(asked, bytes) else None
        if verb == "POST":
            async for event in events(response):
                message = event.data
                if message:
                    self._transcript.add(message, sent=False)
                if id is not None and _members(message).get("id") == id and "method" not in _members(message):
                    return message
        return b""


def initialize(version: str = LATEST_LEGACY_VERSION) -> bytes:
    """The body of the request that opens a session."""
    params = initialize_params(version, CLIENT_INFO, b"{}")
    return request("initialize", params)


def request(method: str, params: bytes | None = None) -> bytes:
    """The body of a request. params: JSON text."""
    fields = {"jsonrpc": b'"2.0"', "id": b'"conformance-1"', "method": quote(method)}
    return join_object(fields if params is None else fields | {"params": params})


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw)
    except NotAnObject:
        return {}
