"""Who is let in over HTTP, and how everybody else is told (issue: each answered as the specification says).

Sources: 2025-11-25 and 2026-07-28 `basic/transports/streamable-http` ("Security Warning", "Session
Management"), `basic/authorization`; RFC 9110 (15.5), RFC 6750 (3).
"""

import asyncio

import pytest
from helpers.raw_http_client import LOCAL, MODERN_STAMP, Json, Reply, Script, message, modern_message, site
from msgspec.structs import replace

from mcpzip.proxy.exchange import Exchange
from mcpzip.server.http.access import access_to, read_address
from mcpzip.wire import LEGACY_VERSIONS

TOKEN = "correct-horse-battery-staple"
GUARDED = replace(LOCAL, token=TOKEN.encode())
OPENING = {
    "protocolVersion": LEGACY_VERSIONS[-1],
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
INITIALIZE = message("initialize", OPENING, 1)
DISCOVER, DISCOVER_HEADERS = modern_message("tools/call", {"name": "hello"})


async def hello(exchange: Exchange) -> bytes:
    return b'{"content":[]}'


def refused(reply: Reply, status: int) -> Json:
    """The error of a refusal, which is JSON-RPC's whatever the status."""
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/json"
    told = reply.last
    assert told["id"] is None
    return told["error"]


ERAS = {"legacy": (INITIALIZE, {}), "modern": (DISCOVER, DISCOVER_HEADERS)}
HEADS = [
    ({"Host": "evil.example"}, 421),
    ({"Host": "evil.example:8931"}, 421),
    ({"Host": "127.0.0.1.evil.example"}, 421),
    ({"Host": "localhost"}, 200),
    ({"Host": "LocalHost:1234"}, 200),
    ({"Host": "[::1]:8931"}, 200),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost.evil.example"}, 403),
    ({"Origin": "http://localhost:6274"}, 200),
    ({"Content_Type": "text/plain"}, 400),
    ({"Content_Type": None}, 400),
    ({"Accept": "application/json"}, 406),
]


@pytest.mark.parametrize("era", ERAS)
async def test_what_the_head_of_a_request_decides(era: str) -> None:
    body, headers = ERAS[era]
    script = Script(hello=hello)
    async with site(script) as web:
        for changed, status in HEADS:
            before = len(script.seen)
            reply = await web.ask("POST", body, **{**headers, **changed})
            assert (changed, reply.status) == (changed, status)
            assert (len(script.seen) > before) == (status == 200)


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1:8931/mcp", "evil.example", 200),
        ("HTTPS://localhost/mcp", "evil.example", 200),
        ("http://evil.example/mcp", "127.0.0.1", 421),
        ("http://127.0.0.1@evil.example/mcp", "127.0.0.1", 421),
        ("http://127.0.0.1", "127.0.0.1", 404),
        ("ftp://127.0.0.1/mcp", "127.0.0.1", 404),
        ("http%3A//127.0.0.1/mcp", "evil.example", 404),
        ("http://127.0.0.1%2Fmcp", "evil.example", 404),
        ("/%6Dcp", "127.0.0.1", 200),
    ],
)
async def test_a_target_in_absolute_form_has_a_host_of_its_own(target: str, host: str, status: int) -> None:
    async with site(Script()) as web:
        assert (await web.ask("POST", INITIALIZE, target, Host=host)).status == status


async def test_web_pages_that_were_named_may_ask_and_read() -> None:
    page = "https://App.example.org"
    access = replace(access_to(read_address("0"), None, (), (page,)), token=TOKEN.encode())
    asked = {
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization,content-type,mcp-protocol-version",
    }
    async with site(Script(hello=hello), access) as web:
        reply = await web.ask("OPTIONS", Origin=page, **asked)
        assert reply.status == 204
        assert reply.headers["access-control-allow-origin"] == page
        assert reply.headers["access-control-allow-headers"] == asked["Access_Control_Request_Headers"]
        assert "DELETE" in reply.headers["access-control-allow-methods"]
        for token, status in ((None, 401), (f"Bearer {TOKEN}", 200)):
            reply = await web.ask("POST", INITIALIZE, Origin=page, Authorization=token)
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, page)
            assert "mcp-session-id" in reply.headers["access-control-expose-headers"]
        for origin, status in (("https://evil.example", 403), ("http://localhost:3000", 401)):
            reply = await web.ask("OPTIONS", Origin=origin, **asked)
            assert reply.status == status
            assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
async def test_nothing_is_served_elsewhere(verb: str) -> None:
    async with site(Script()) as web:
        for path in ("/", "/mcp/", "/mcp/../mcp", "/sse", "/.well-known/oauth-protected-resource"):
            assert (
                "/mcp"
                in refused(await web.ask(verb, b"{}" if verb == "POST" else None, path), 404)["message"]
            )


async def test_anybody_may_ask_whether_it_runs_and_learns_nothing_else() -> None:
    script = Script()
    async with site(script, GUARDED) as web:
        for more in ({}, {"Host": "10.0.0.7:8931"}, {"Origin": "https://evil.example"}):
            reply = await web.ask("GET", None, "/health", **more)
            assert (reply.status, reply.body) == (200, b'{"status":"ok"}')
            assert reply.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in reply.headers
        refused(await web.ask("POST", b"{}", "/health"), 405)
        refused(await web.ask("GET", None, "/healthy"), 404)
    assert script.seen == []


TOKENS = [
    (None, 401, "Bearer realm="),
    (f"Bearer {TOKEN}x", 401, 'error="invalid_token"'),
    ("Bearer ", 401, 'error="invalid_token"'),
    (f"Basic {TOKEN}", 401, 'error="invalid_token"'),
    (TOKEN, 401, 'error="invalid_token"'),
    ("Bearer t\xf6ken-of-sixteen", 401, 'error="invalid_token"'),
    (f"Bearer {TOKEN}", 200, ""),
    (f"bearer {TOKEN}", 200, ""),
]


@pytest.mark.parametrize("era", ERAS)
async def test_the_token_is_demanded_on_loopback_too(era: str) -> None:
    body, headers = ERAS[era]
    script = Script(hello=hello)
    async with site(script, GUARDED) as web:
        for given, status, challenge in TOKENS:
            before = len(script.seen)
            reply = await web.ask("POST", body, Authorization=given, **headers)
            assert (given, reply.status) == (given, status)
            assert challenge in reply.headers.get("www-authenticate", "")
            assert (len(script.seen) > before) == (status == 200)
            assert TOKEN.encode() not in reply.body
        for verb in ("GET", "DELETE"):
            assert refused(await web.ask(verb), 401)
        assert refused(await web.ask("POST", INITIALIZE, "/other"), 404)


async def test_no_token_is_not_called_invalid() -> None:
    async with site(Script(), GUARDED) as web:
        reply = await web.ask("POST", INITIALIZE)
        assert reply.headers["www-authenticate"] == 'Bearer realm="mcpzip"'


async def test_who_has_no_token_has_its_body_not_waited_for() -> None:
    async with site(Script(), GUARDED, linger=0.05) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", Content_Length="1000"))
        assert refused(await connection.reply(), 401)
        assert await connection.ended()


async def test_an_oversized_body_that_is_announced_is_not_taken() -> None:
    async with site(Script(), body=1000, linger=0.05) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", Content_Length="1001"))
        assert "1,000 bytes" in refused(await connection.reply(), 413)["message"]
        assert await connection.ended()


async def test_an_oversized_body_that_is_not_announced_is_cut_off() -> None:
    async with site(Script(), body=1000) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", Content_Length=None, Transfer_Encoding="chunked"))
        for _ in range(3):
            await connection.write(b"190\r\n" + b"x" * 400 + b"\r\n")
        assert refused(await connection.reply(), 413)
        await connection.write(b"0\r\n\r\n")
        assert await connection.ended()


async def test_bodies_have_an_end_together_that_small_ones_do_not_feel() -> None:
    """Each connection could hold 64 MiB for a minute, and there are 2,000."""
    body = message("tools/call", {"name": "hello", "arguments": {"text": "x" * 900}}, 1)
    async with (
        site(Script(hello=hello), body=2_000, bodies=2_000, small_body=1_200, linger=0.05) as web,
        web.connected() as first,
        web.connected() as second,
    ):
        await first.write(web.request("POST", b"x" * 1_500, Content_Length="1900"))
        await second.write(web.request("POST", b"x" * 1_500, Content_Length="1900"))
        refusals = asyncio.create_task(first.reply()), asyncio.create_task(second.reply())
        await asyncio.wait(refusals, return_when=asyncio.FIRST_COMPLETED)
        late = next(each for each in refusals if each.done())
        assert "Too much is being sent" in refused(late.result(), 503)["message"]
        session = await web.session()
        assert (await session.ask("POST", body)).status == 200
        other = next(each for each in refusals if each is not late)
        other.cancel()


async def test_a_body_of_the_greatest_size_is_taken() -> None:
    body = message("tools/call", {"name": "hello", "arguments": {"text": "x" * 900}}, 1)
    script = Script(hello=hello)
    async with site(script, body=len(body)) as web:
        session = await web.session()
        assert (await session.ask("POST", body)).raw_result == b'{"content":[]}'
        assert refused(await session.ask("POST", body + b" "), 413)


async def test_a_body_that_does_not_come_is_given_up() -> None:
    script = Script()
    async with site(script, body_time=0.05) as web, web.connected() as connection:
        await connection.write(web.request("POST", INITIALIZE)[:-5])
        assert "in time" in refused(await connection.reply(), 408)["message"]
        assert await connection.ended()
    assert script.seen == []


async def test_a_body_that_trickles_in_is_given_up() -> None:
    async with site(Script(), body_time=0.1) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", Content_Length="10000"))

        async def trickle() -> None:
            while True:
                await connection.write(b" ")
                await asyncio.sleep(0.005)

        trickling = asyncio.create_task(trickle())
        assert refused(await connection.reply(), 408)
        trickling.cancel()
        await asyncio.wait({trickling})


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127"])
async def test_a_head_that_does_not_come_is_given_up(sent: bytes) -> None:
    async with site(Script(), head_time=0.05) as web, web.connected() as connection:
        await connection.write(sent)
        assert (await connection.head()).status == 408
        assert await connection.ended()


async def test_so_is_the_head_of_a_later_request() -> None:
    async with site(Script(), head_time=1.0) as web, web.connected() as connection:
        await connection.write(web.request("POST", INITIALIZE))
        assert (await connection.reply()).status == 200
        await connection.write(b"GET /mcp HTTP/1.1\r\n")
        assert (await connection.head()).status == 408
        assert await connection.ended()


async def test_a_head_that_is_too_long_is_refused() -> None:
    async with site(Script(), head=2000) as web, web.connected() as connection:
        await connection.write(b"GET /mcp HTTP/1.1\r\nX-Long: " + b"x" * 3000)
        assert (await connection.head()).status == 400
        while not await connection.ended():
            pass


async def test_a_client_that_leaves_within_its_body_leaves_nothing() -> None:
    script = Script()
    async with site(script) as web:
        async with web.connected() as connection:
            await connection.write(web.request("POST", INITIALIZE)[:-5])
        assert (await web.ask("POST", INITIALIZE)).status == 200  # and the others are served
    assert len(script.seen) == 1


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_only_a_post_has_a_body(verb: str) -> None:
    async with site(Script(), linger=0.05) as web:
        session = await web.session()
        for header in ({"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}):
            async with web.connected() as connection:
                await connection.write(session.request(verb, **header))
                assert refused(await connection.reply(), 400)
                assert await connection.ended()


@pytest.mark.parametrize("refused_by", ["a token", "nothing"])
async def test_what_is_no_http_in_the_midst_of_a_response_ends_it(refused_by: str) -> None:
    """And says nothing on stderr, to which anybody could write so (`site` listens for what is logged)."""
    access = GUARDED if refused_by == "a token" else LOCAL
    async with site(Script(), access) as web, web.connected() as connection:
        headers = {"Content_Length": None, "Transfer_Encoding": "chunked"}
        await connection.write(web.request("POST", b"", **headers))
        if refused_by == "a token":
            assert (await connection.head()).status == 401
        await connection.write(b"zz\r\n")
        while not await connection.ended():
            pass


NOT_MESSAGES = [
    (b"", 400, -32700),
    (b"{", 400, -32700),
    (b"[]", 400, None),
    (b'"text"', 400, None),
    (b"{}", 400, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, None),
    (b"\xff\xfe", 400, -32700),
    (b"[" * 100_000, 400, -32700),
]


@pytest.mark.parametrize(("body", "status", "code"), NOT_MESSAGES)
async def test_what_is_no_message_is_refused(body: bytes, status: int, code: int | None) -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        reply = await session.ask("POST", body)
        assert reply.status == status
        assert code is None or reply.last["error"]["code"] == code
        assert "ping" not in [method for _, method, _ in script.seen]


async def test_a_modern_request_is_judged_by_its_headers() -> None:
    script = Script(hello=hello)
    async with site(script) as web:
        body, headers = modern_message("tools/call", {"name": "hello"})
        for changed, code in [
            ({"Mcp_Method": "tools/list"}, -32020),
            ({"Mcp_Name": "other"}, -32020),
            ({"Mcp_Method": None}, -32020),
            ({"MCP_Protocol_Version": "2027-01-01"}, -32020),
        ]:
            reply = await web.ask("POST", body, **{**headers, **changed})
            assert (reply.status, reply.last["error"]["code"]) == (400, code), changed
        for capabilities in (None, 5, "x", []):
            stamp = {**MODERN_STAMP, "io.modelcontextprotocol/clientCapabilities": capabilities}
            odd = message("tools/call", {"name": "hello", "_meta": stamp}, 1)
            reply = await web.ask("POST", odd, **headers)
            assert (reply.status, reply.last["error"]["code"]) == (400, -32602)
        unknown = {**MODERN_STAMP, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        later = message("tools/call", {"name": "hello", "_meta": unknown}, 1)
        reply = await web.ask("POST", later, **{**headers, "MCP_Protocol_Version": "2027-01-01"})
        assert (reply.status, reply.last["error"]["code"]) == (400, -32022)
        assert reply.last["error"]["data"]["supported"] == ["2026-07-28"]
        assert script.seen == []


async def test_what_a_modern_client_says_besides_requests() -> None:
    async with site(Script()) as web:
        told = message("notifications/odd")
        assert (await web.ask("POST", told, MCP_Protocol_Version="2026-07-28")).status == 202
        reply = await web.ask("POST", told, MCP_Protocol_Version="2027-01-01")
        assert (reply.status, reply.last["error"]["code"]) == (400, -32022)
        for said in (b'{"jsonrpc":"2.0","id":1,"result":{}}', b"[]", b"{", b'{"jsonrpc":"2.0","id":null}'):
            assert (await web.ask("POST", said, MCP_Protocol_Version="2026-07-28")).status == 400


@pytest.mark.parametrize("verb", ["PUT", "HEAD", "OPTIONS"])
async def test_other_verbs_are_not_allowed(verb: str) -> None:
    async with site(Script()) as web:
        for session in (None, (await web.session()).id):
            async with web.connected() as connection:
                await connection.write(web.request(verb, Mcp_Session_Id=session))
                reply = await connection.head()
                assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_the_modern_era_is_posted_only(verb: str) -> None:
    async with site(Script()) as web:
        reply = await web.ask(verb, **DISCOVER_HEADERS)
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
        assert (await web.ask(verb, MCP_Protocol_Version="2099-01-01")).status == 400


async def test_a_version_that_is_not_served_is_called_so_whatever_the_body_lacks() -> None:
    async with site(Script()) as web:
        session = await web.session()
        reply = await session.ask("POST", message("ping", id=1), MCP_Protocol_Version="2099-01-01")
        assert (reply.status, reply.last["error"]["code"]) == (400, -32022)
        assert "2026-07-28" in reply.last["error"]["data"]["supported"]


async def test_a_modern_request_without_its_header_is_told_which() -> None:
    async with site(Script(hello=hello)) as web:
        reply = await web.ask("POST", DISCOVER, **{**DISCOVER_HEADERS, "MCP_Protocol_Version": None})
        assert (reply.status, reply.last["error"]["code"], reply.last["id"]) == (400, -32020, 1)


async def test_an_unknown_method_is_not_found() -> None:
    async with site(Script()) as web:
        reply = await web.modern("tools/fly")
        assert (reply.status, reply.last["error"]["code"]) == (404, -32601)
        session = await web.session()
        reply = await session.ask("POST", message("tools/fly", {}, 2))
        assert (reply.status, reply.last["error"]["code"]) == (200, -32601)


async def test_a_defect_of_ours_is_told_and_warned_of() -> None:
    async def broken(exchange: Exchange) -> bytes:
        raise ZeroDivisionError("oops")

    async with site(Script(broken=broken)) as web:
        session = await web.session()
        error = (await session.call("broken")).last["error"]
        assert error["code"] == -32603
        assert "ZeroDivisionError" in error["message"]


@pytest.mark.parametrize(
    "name", ["Host", "Origin", "Authorization", "Content-Type", "Mcp-Session-Id", "MCP-Protocol-Version"]
)
async def test_a_header_that_is_judged_stands_once(name: str) -> None:
    """Of two `Origin` headers only the first was."""
    script = Script(hello=hello)
    values = {
        "Host": ("localhost", "evil.example"),
        "Origin": ("http://localhost", "https://evil.example"),
        "Authorization": (f"Bearer {TOKEN}", "Bearer other"),
        "Content-Type": ("application/json", "text/plain"),
        "Mcp-Session-Id": ("1" * 32, "2" * 32),
        "MCP-Protocol-Version": LEGACY_VERSIONS[:2],
    }[name]
    async with site(script, GUARDED) as web, web.connected() as connection:
        given = {"Authorization": f"Bearer {TOKEN}", name: values[0]}
        sent = web.request("POST", INITIALIZE, **{key.replace("-", "_"): it for key, it in given.items()})
        first, rest = sent.split(b"\r\n", 1)
        doubled = b"%b\r\n%b\r\n%b" % (first, f"{name}: {values[0]}".encode(), rest)
        if name != "Host":  # h11 has its own word on that
            doubled = doubled.replace(rest, rest.replace(values[0].encode(), values[1].encode(), 1))
        await connection.write(doubled)
        assert (await connection.reply()).status == 400
        assert script.seen == []
