"""What becomes of the requests of people who have tokens: while a token is looked at, in sessions, where a
tool needs a scope, and where there are too many.
"""

import asyncio
import json

import pytest
from helpers.driver import INITIALIZE, until
from helpers.raw_http_client import Script, message, modern_message, site
from helpers.resource_server import (
    CALL,
    CALL_HEADERS,
    URL,
    StartAuth,
    call,
    challenge,
    people,
    who,
)
from helpers.resource_server import auth as auth
from mcpzip_fakes.oauth.server import FakeAuth

from mcpzip.config.schema import RateLimit
from mcpzip.proxy.exchange import Exchange
from mcpzip.wire import INVALID_REQUEST, JsonRpcError, ScopeError

# --- while it isn't known who asks


async def test_nothing_is_read_before_it_is_known_who_asks(fake_auth: StartAuth) -> None:
    slow = {"kind": "slow", "endpoint": "jwks", "seconds": 0.3}
    auth = fake_auth(access_tokens="jwt", faults=[slow])
    big = message("tools/call", {"name": "who", "text": "x" * 5_000_000}, 1)
    script = Script(who=who)
    async with site(script, people=people(auth)) as web:
        wrong = auth.sign(sub="u1", aud="https://other.example")
        async with web.connected() as connection:
            request = web.request("POST", big, Authorization=f"Bearer {wrong}")
            sending = asyncio.create_task(connection.write(request))
            assert (await connection.head()).status == 401
            sending.cancel()
        headers = {**CALL_HEADERS, "Authorization": f"Bearer {auth.sign(sub='u2', aud=URL)}"}
        assert (await web.ask("POST", CALL, **headers)).status == 200
    assert len([each for each in script.seen if each[1] == "tools/call"]) == 1


@pytest.mark.parametrize("size", [10, 400_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
async def test_a_body_that_came_meanwhile_is_not_lost(fake_auth: StartAuth, size: int, chunked: bool) -> None:
    slow = {"kind": "slow", "endpoint": "jwks", "seconds": 0.2}
    auth = fake_auth(access_tokens="jwt", faults=[slow])
    body, headers = modern_message("tools/call", {"name": "who", "text": "x" * size})
    async with site(Script(who=who), people=people(auth)) as web, web.connected() as connection:
        token = {"Authorization": f"Bearer {auth.sign(sub='u1', aud=URL)}"}
        if chunked:
            headers |= {"Transfer_Encoding": "chunked", "Content_Length": None}  # type: ignore[dict-item]
        request = web.request("POST", body, **{**headers, **token})
        if chunked:
            head, _, _ = request.partition(b"\r\n\r\n")
            pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]
            sent = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces)
            request = head + b"\r\n\r\n" + sent + b"0\r\n\r\n"
        await connection.write(request)
        assert (await connection.reply()).status == 200
        await connection.write(web.request("POST", CALL, **{**CALL_HEADERS, **token}))
        assert (await connection.reply()).status == 200


async def test_a_client_that_leaves_meanwhile_leaves_nothing(fake_auth: StartAuth) -> None:
    auth = fake_auth(access_tokens="jwt", faults=[{"kind": "hang", "endpoint": "jwks"}])
    async with site(Script(who=who), people=people(auth)) as web, web.connected() as connection:
        headers = {**CALL_HEADERS, "Authorization": f"Bearer {auth.sign(sub='u1', aud=URL)}"}
        await connection.write(web.request("POST", CALL, **headers))
        await asyncio.to_thread(until, lambda: auth.requests("jwks"))
    # `site` looks for tasks that are left


# --- sessions


async def test_a_session_is_of_who_began_it(auth: FakeAuth) -> None:
    ann, bob = ({"Authorization": f"Bearer {auth.sign(sub=name, aud=URL)}"} for name in ("ann", "bob"))
    async with site(Script(who=who), people=people(auth)) as web:
        reply = await web.ask("POST", message("initialize", INITIALIZE, 1), **ann)
        session = {"Mcp_Session_Id": reply.headers["mcp-session-id"], "MCP_Protocol_Version": "2025-11-25"}
        asked = message("tools/call", {"name": "who"}, 2)
        assert (await web.ask("POST", asked, **session, **ann)).last["result"]["who"] == ["ann", "ann"]
        for verb, body in (("POST", asked), ("GET", None), ("DELETE", None)):
            assert (await web.ask(verb, body, **session, **bob)).status == 404
            assert (await web.ask(verb, body, **session)).status == 401
        resumed = {"Last_Event_ID": "1-0"}
        assert (await web.ask("GET", None, **session, **resumed, **bob)).status == 404
        again = {"Authorization": f"Bearer {auth.sign(sub='ann', aud=URL, scope='more')}"}
        assert (await web.ask("POST", asked, **session, **again)).last["result"]["scopes"] == ["more"]
        assert (await web.ask("DELETE", None, **session, **again)).status == 200


# --- a scope that only some tools need


async def needy(exchange: Exchange) -> bytes:
    raise JsonRpcError(ScopeError(INVALID_REQUEST, "It lacks a scope.", scopes=("write",)))


async def slow_and_needy(exchange: Exchange) -> bytes:
    exchange.notify("notifications/progress", b'{"progressToken":1,"progress":1}')
    return await needy(exchange)


@pytest.mark.parametrize("era", ["legacy", "modern", "batch"])
async def test_a_scope_of_a_tool_is_asked_for_before_any_event(auth: FakeAuth, era: str) -> None:
    token = {"Authorization": f"Bearer {auth.sign(sub='ann', aud=URL, scope='mcp read')}"}
    async with site(Script(needy=needy), people=people(auth, scopes=["mcp"])) as web:
        body, headers = modern_message("tools/call", {"name": "needy"})
        if era != "modern":
            version = "2025-03-26" if era == "batch" else "2025-11-25"
            begin = message("initialize", {**INITIALIZE, "protocolVersion": version}, 1)
            session = (await web.ask("POST", begin, **token)).headers["mcp-session-id"]
            headers = {"Mcp_Session_Id": session, "MCP_Protocol_Version": version}
            body = message("tools/call", {"name": "needy"}, 2)
        if era == "batch":
            reply = await web.ask("POST", b"[%b]" % body, **headers, **token)
            assert reply.status == 200
            assert json.loads(reply.messages[-1])[0]["error"]["message"] == "It lacks a scope."
            return
        reply = await web.ask("POST", body, **headers, **token)
        assert reply.status == 403
        told = challenge(reply)
        assert (told["error"], told["scope"]) == ("insufficient_scope", "mcp write")
        assert told["resource_metadata"]
        assert reply.last["id"] is not None


async def test_after_an_event_there_is_no_header_any_more(auth: FakeAuth) -> None:
    token = {"Authorization": f"Bearer {auth.sign(sub='ann', aud=URL)}"}
    async with site(Script(slow=slow_and_needy), people=people(auth)) as web:
        body, headers = modern_message("tools/call", {"name": "slow"})
        reply = await web.ask("POST", body, **headers, **token)
        assert (reply.status, len(reply.messages)) == (200, 2)
        assert reply.last["error"]["message"] == "It lacks a scope."


# --- how many requests


async def test_who_makes_too_many_requests_is_told_when_to_try_again(auth: FakeAuth) -> None:
    known, limits = people(auth), [RateLimit(requests=2, seconds=3_600, groups=frozenset({"agents"}))]
    known.rate_limits = lambda: tuple(limits)
    async with site(Script(who=who), people=known) as web:
        agent = auth.sign(sub="u1", aud=URL, groups=["agents", "dev"])
        other = auth.sign(sub="u2", aud=URL, groups=["dev"])
        assert [(await call(web, agent)).status for _ in range(2)] == [200, 200]
        reply = await call(web, agent)
        assert reply.status == 429
        assert 1_795 <= int(reply.headers["retry-after"]) <= 1_800
        assert reply.headers["content-type"] == "application/json"
        assert "2 requests in 3600 s. This one was not read: try again in" in reply.last["error"]["message"]
        invalid = await web.ask("POST", b"no JSON", **{**CALL_HEADERS, "Authorization": f"Bearer {agent}"})
        assert invalid.status == 429
        stream = await web.ask("GET", None, Authorization=f"Bearer {agent}", Accept="text/event-stream")
        assert stream.status == 429
        assert [(await call(web, other)).status for _ in range(5)] == [200] * 5
        assert (await call(web, "wrong")).status == 401
        limits[:] = [RateLimit(calls=1)]  # an edit of the config
        assert [(await call(web, agent)).status for _ in range(3)] == [200] * 3
