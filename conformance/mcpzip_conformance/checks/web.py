"""Checks of Streamable HTTP: statuses, sessions, headers, access control.

The requests are single ones (`mcpzip_conformance.raw_http`), because clients don't send invalid requests.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit

from mcpzip.wire import (
    HEADER_MISMATCH,
    MODERN_VERSION,
    join_object,
    split_object,
    stamp_request,
    unquote,
)
from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect
from mcpzip_conformance.client import Fields
from mcpzip_conformance.errors import Finding, NoAnswerError, NotPlayableError
from mcpzip_conformance.player import CLIENT_INFO, Player
from mcpzip_conformance.raw_http import INITIALIZED, PING, RawHttp, initialize, request
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.template import places_in

TRANSPORTS = SPEC_2025 + "/basic/transports"
SESSIONS = TRANSPORTS + "#session-management"
SENDING = TRANSPORTS + "#sending-messages-to-the-server"
WARNING = TRANSPORTS + "#security-warning"
HIJACKING = SPEC_2025 + "/basic/security_best_practices#session-hijacking"
PASSTHROUGH = SPEC_2025 + "/basic/authorization#access-token-privilege-restriction"
MODERN = SPEC_2026 + "/basic/transports/streamable-http"
HTTP = ("http",)

ECHO = server(tools=[tool("echo")])
STRANGER = "http://stranger.example"
_SESSION = "Mcp-Session-Id"
_VERSION = "MCP-Protocol-Version"


async def _served(stage: Stage) -> RawHttp:
    """A running HTTP subject without clients."""
    return RawHttp(stage, await stage.started(ECHO))


async def _with_session(http: RawHttp) -> dict[str, str]:
    """The headers of a session. The check is skipped if the subject has no sessions."""
    headers = await http.session()
    if _SESSION not in headers:
        raise NotPlayableError("It has no sessions.")
    return headers


# Statuses


@check("protocol.http-notification-accepted", MUST, SENDING, needs=HTTP)
async def http_notification_accepted(stage: Stage) -> None:
    """A notification that is accepted is answered with 202 and no body, one that isn't with an HTTP error."""
    async with await _served(stage) as http:
        headers = await http.session()
        told = await http.post(INITIALIZED, headers)
        accepted = told.status == 202 and not told.body
        expect(accepted or told.status >= 400, f"It is answered with {told}.")


@check("protocol.http-malformed-body", MUST, SENDING, needs=HTTP)
async def http_malformed_body(stage: Stage) -> None:
    """A body that is no message is answered with an error, by HTTP or JSON-RPC, and the next request is
    answered."""
    async with await _served(stage) as http:
        headers = await http.session()
        for body in (b'{"jsonrpc":"2.0","id":1,', b"", b"\xff\xfe", b"42"):
            told = await http.post(body, headers)
            refused = told.status >= 400 or told.reply.error is not None
            expect(refused, f"The body {body!r} is answered with {told}.")
        told = await http.post(request("tools/list"), headers)
        expect(told.reply.result is not None, f"tools/list is then answered with {told}.")


@check("protocol.http-get", MUST, TRANSPORTS + "#listening-for-messages-from-the-server", needs=HTTP)
async def http_get(stage: Stage) -> None:
    """A GET in a session opens a stream of events, or is answered with 405."""
    async with await _served(stage) as http:
        told = await http.get({"Accept": "text/event-stream", **await http.session()})
        streams = told.status == 200 and told.kind == "text/event-stream"
        expect(streams or told.status == 405, f"It is answered with {told.status}, {told.kind or 'no type'}.")


@check("protocol.http-accepts", SHOULD, "https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1", needs=HTTP)
async def http_accepts(stage: Stage) -> None:
    """Any valid ``Accept`` is accepted: any order, and weights; and a charset in ``Content-Type``."""
    spelt = (
        {"Accept": "text/event-stream, application/json"},
        {"Accept": "application/json;q=0.9 ,text/event-stream; q=0.8"},
        {"Content-Type": "application/json; charset=utf-8"},
    )
    async with await _served(stage) as http:
        headers = await http.session()
        for given in spelt:
            told = await http.post(PING, {**headers, **given})
            expect(told.reply.result is not None, f"With {given} a ping is answered with {told}.")


# Versions


@check("protocol.http-version-header", MUST, TRANSPORTS + "#protocol-version-header", needs=HTTP)
async def http_version_header(stage: Stage) -> None:
    """A request with an unsupported ``MCP-Protocol-Version`` is answered with 400."""
    async with await _served(stage) as http:
        headers = await http.session()
        for version in ("1999-12-31", "nonsense"):
            told = await http.post(PING, {**headers, _VERSION: version})
            expect(told.status == 400, f"Under {version} a ping is answered with {told}.")


@check("protocol.http-modern-headers", MUST, MODERN + "#server-validation", needs=("http", "modern"))
async def http_modern_headers(stage: Stage) -> None:
    """In 2026-07-28 a request whose ``Mcp-Method`` or ``Mcp-Name`` contradicts its body is refused with 400
    and error -32020."""
    player = await stage.through(ECHO, version=MODERN_VERSION)
    asked = player.route.call(SHOP, "echo", b"{}")
    name = unquote(split_object(asked)["name"])
    body = request("tools/call", stamp_request(asked, MODERN_VERSION, CLIENT_INFO, b"{}"))
    right = {_VERSION: MODERN_VERSION, "Mcp-Method": "tools/call", "Mcp-Name": name}
    async with RawHttp(stage, player) as http:
        for wrong in (
            {"Mcp-Method": "tools/list"},
            {"Mcp-Name": f"{name}-not"},
            {"Mcp-Name": "=?base64?bm90LXRoaXM=?="},
        ):
            told = await http.post(body, {**right, **wrong})
            expect(
                told.status == 400 and told.reply.code == HEADER_MISMATCH, f"With {wrong} it answers {told}."
            )
        told = await http.post(body, right)
        expect(told.reply.result is not None, f"With the right headers it answers {told}.")


@check("protocol.http-two-eras", SHOULD, SPEC_2026 + "/basic/versioning", needs=("http", "modern"))
async def http_two_eras(stage: Stage) -> None:
    """A session of the legacy era and requests of the modern one are served at the same time."""
    legacy = await stage.through(ECHO)
    modern = await stage.beside(legacy, version=MODERN_VERSION)
    for player in (legacy, modern, legacy):
        reply = await player.call(SHOP, "echo", b'{"n":1}')
        expect(reply.json == {"n": 1}, f"A call in {player.version} is answered with {reply.text!r}.")


# Sessions


@check("protocol.http-unknown-session", SHOULD, SESSIONS, needs=HTTP)
async def http_unknown_session(stage: Stage) -> None:
    """A request in an unknown session is answered with 404, which tells a client to start a new one, as after
    a restart."""
    async with await _served(stage) as http:
        headers = await _with_session(http)
        told = await http.post(PING, {**headers, _SESSION: secrets.token_hex(16)})
        expect(told.status == 404, f"It is answered with {told}.")


@check("protocol.http-no-session", SHOULD, SESSIONS, needs=HTTP)
async def http_no_session(stage: Stage) -> None:
    """A request without its session id is answered with 400, or is served."""
    async with await _served(stage) as http:
        headers = await _with_session(http)
        told = await http.post(PING, {_VERSION: headers[_VERSION]})
        served = told.status == 200 and told.reply.result is not None
        expect(served or told.status == 400, f"It is answered with {told}.")


@check("protocol.http-session-ended", MUST, SESSIONS, needs=HTTP)
async def http_session_ended(stage: Stage) -> None:
    """A DELETE ends the session, and later requests in it get 404; or the DELETE is answered with 405."""
    async with await _served(stage) as http:
        headers = await _with_session(http)
        ended = await http.delete(headers)
        expect(ended.status == 405 or 200 <= ended.status < 300, f"The DELETE is answered with {ended}.")
        if ended.status != 405:
            told = await http.post(PING, headers)
            expect(told.status == 404, f"A ping in the ended session is answered with {told}.")


@check("protocol.http-session-id", MUST, SESSIONS, needs=HTTP)
async def http_session_id(stage: Stage) -> None:
    """A session id is made of visible ASCII characters."""
    async with await _served(stage) as http:
        id = (await _with_session(http))[_SESSION]
        expect(id and all("!" <= char <= "~" for char in id), f"It gives the id {id!r}.")


@check("security.session-ids", SHOULD, SESSIONS, needs=HTTP)
async def session_ids(stage: Stage) -> None:
    """Session ids can't be guessed from one another: each has 16 characters or more, and any two differ in at
    least 8 places."""
    async with await _served(stage) as http:
        ids = [(await _with_session(http))[_SESSION] for _ in range(6)]
    expect(all(len(id) >= 16 for id in ids), f"It gives the id {min(ids, key=len)!r}.")
    for n, one in enumerate(ids):
        for other in ids[:n]:
            apart = sum(a != b for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))
            expect(apart >= 8, f"It gives the ids {other!r} and {one!r}.")


@check("security.sessions-apart", MUST, HIJACKING, needs=HTTP)
async def sessions_apart(stage: Stage) -> None:
    """Two sessions are isolated: concurrent calls with the same id and progress token are answered to their
    own clients, and neither sees the other's progress, logs or answer."""
    words = [secrets.token_hex(8) for _ in range(2)]
    shop = server(tools=[_telling(f"tell_{n}", word) for n, word in enumerate(words)])
    first = await stage.through(shop)
    players = [first, await stage.beside(first)]
    for n, player in enumerate(players):
        params = player.route.call(SHOP, f"tell_{n}", b"{}", b'{"progressToken":"same"}')
        fields = {"jsonrpc": b'"2.0"', "id": b"4711", "method": b'"tools/call"', "params": params}
        player.client.write(join_object(fields))
    for n, player in enumerate(players):
        try:
            answer = await player.client.wait_for(_answers_4711)
        except NoAnswerError:
            raise Finding("The call of one session gets no answer while the other's is open.") from None
        text = _inner(player, answer).text
        expect(words[1 - n] not in text, f"The call of one session is answered with {text!r}.")
    for n, player in enumerate(players):
        await player.request("ping")  # all messages before its answer have arrived by then
        seen = b"\n".join(player.client.transcript.received())
        expect(words[1 - n].encode() not in seen, "One session was told what is the other's.")


def _telling(name: str, word: str) -> dict[str, object]:
    """A tool that sends ``word`` as progress, log and result."""
    steps = [{"progress": step, "message": f"{word} {step}", "wait": 0.05} for step in (1, 2, 3)]
    return tool(name, None, text=word, log=[{"data": word}], progress=steps)


def _answers_4711(fields: Fields) -> bool:
    return fields.get("id") == b"4711" and "method" not in fields


def _inner(player: Player, answer: Fields) -> Reply:
    result = answer.get("result")
    return Reply(error=answer.get("error")) if result is None else Reply(result=player.route.inner(result))


# Access


@check("security.origin", MUST, WARNING, needs=HTTP)
async def origin(stage: Stage) -> None:
    """A request with the ``Origin`` of a web page that was not allowed is answered with 403, whether it opens
    a session or is in one."""
    player = await stage.through(ECHO)
    body = request("tools/call", player.route.call(SHOP, "echo", b"{}"))
    async with RawHttp(stage, player) as http:
        headers = await http.session()
        told = await http.post(initialize(), {"Origin": STRANGER})
        expect(told.status == 403, f"An initialize from {STRANGER} is answered with {told}.")
        told = await http.post(body, {**headers, "Origin": STRANGER})
        expect(told.status == 403, f"A call from {STRANGER} is answered with {told}.")


@check("security.host", SHOULD, WARNING, needs=HTTP)
async def host(stage: Stage) -> None:
    """A request for another ``Host`` is refused by a subject that serves this machine only, because of DNS
    rebinding: a web page can point its own host name to this machine."""
    async with await _served(stage) as http:
        told = await http.post(initialize(), {"Host": "stranger.example"})
        expect(400 <= told.status < 500, f"For stranger.example it answers {told}.")


@check("security.loopback", SHOULD, WARNING, needs=HTTP)
async def loopback(stage: Stage) -> None:
    """Started to serve this machine, it accepts connections on loopback only."""
    address = _own_address()
    http = await _served(stage)
    async with http:
        port = urlsplit(http.url).port
        try:
            async with asyncio.timeout(stage.patience):
                _, writer = await asyncio.open_connection(address, port)
        except (OSError, TimeoutError):
            return
        writer.close()
    raise Finding(f"It takes connections on {address}, too.")


def _own_address() -> str:
    """An address of this machine that isn't loopback. Raises NotPlayableError if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no data is sent: connect only selects the local address
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        raise NotPlayableError("This machine has no address but loopback.")
    return address


@check("security.client-token", MUST, PASSTHROUGH, needs=HTTP)
async def client_token(stage: Stage) -> None:
    """The token in a client's ``Authorization`` reaches no server: neither in a message nor in a header.

    The values of a server's environment aren't recorded, so what stands there isn't seen.
    """
    if "scenario" in places_in(stage.subject.start.command):
        raise NotPlayableError("It is the server itself: the token is for it.")
    if "people" not in stage.subject.missing():
        raise NotPlayableError("It needs a token that it knows: resource-server.token-passthrough has one.")
    word = f"s3cret-{secrets.token_hex(8)}"
    player = await stage.through(ECHO, headers={"Authorization": f"Bearer {word}"})
    with suppress(NoAnswerError):  # only what the servers got counts
        await player.call(SHOP, "echo", b'{"n":1}')
    for record in stage.records().values():
        seen = record.path.read_bytes() if record.path.exists() else b""  # it may not have been started
        expect(word.encode() not in seen, "A server got the token.")


_CREDENTIALS = ("authorization", "cookie", "x-api-key", "mcp-session-id")


@check("security.server-redirect", MUST, HIJACKING)
async def server_redirect(stage: Stage) -> None:
    """If a server redirects a call to another host, its token, cookie and session id are not sent there."""
    player = await stage.through(_redirecting())
    try:
        await player.call(SHOP, "pay")
    except Finding:
        pass  # whether it is answered is another check's requirement
    for line in stage.record(SHOP).lines():
        headers = line.detail.get("headers")
        if isinstance(headers, dict) and str(headers.get("host", "")).startswith("localhost"):
            given = [name for name in _CREDENTIALS if name in headers]
            expect(not given, f"The other host got {', '.join(given)}.")


@check("resilience.redirect", SHOULD, CONTRACT)
async def redirect(stage: Stage) -> None:
    """If a server redirects a call to another host, the call is answered, and so is the next one."""
    player = await stage.through(_redirecting())
    await player.call(SHOP, "pay")
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"The next call is answered with {reply.text!r}.")


def _redirecting() -> Server:
    away = {"kind": "redirect", "tool": "pay", "to": "other"}
    return server(tools=[tool("pay", text="paid"), tool("echo")], faults=[away])


_MB = 1 << 20


@check("security.body-limit", SHOULD, "https://www.rfc-editor.org/rfc/rfc9110#section-15.5.14", needs=HTTP)
async def body_limit(stage: Stage) -> None:
    """A body of 100 MB is refused or accepted; the next request is answered in both cases."""
    player = await stage.through(ECHO)
    async with RawHttp(stage, player) as http:
        headers = await http.session()
        try:
            await http.post(_much(), {**headers, "Content-Length": str(100 * _MB)})
        except Finding:
            pass  # closing the connection is a refusal
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"The next call is answered with {reply.text!r}.")


async def _much() -> AsyncIterator[bytes]:
    """A ping with 100 MB of white space."""
    yield b" " * (_MB - len(PING)) + PING
    for _ in range(99):
        yield b" " * _MB
