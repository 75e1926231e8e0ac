"""The answer of an authorization server: what counts as one, and the server on loopback that waits for it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.auth.authorization_response import (
    DENIALS,
    AuthorizationCode,
    AuthorizationDenied,
    InvalidResponse,
    pasted_query,
    read_response,
)
from mcpzip.auth.callback import Callback
from mcpzip.model.errors import LoginError

STATE = "s-Tate_of~this.login"
RIGHT = {"code": "c0de", "state": STATE}
URI = "http://127.0.0.1:40001/callback"
PATIENCE = 20.0


# ---- what counts as an answer


def test_the_right_answer() -> None:
    answer = read_response(urlencode({**RIGHT, "iss": "https://as.example", "session_state": "x"}), STATE)
    assert answer == AuthorizationCode("c0de", STATE, "https://as.example")
    assert read_response(urlencode(RIGHT), STATE) == AuthorizationCode("c0de", STATE, None)
    assert read_response(urlencode({**RIGHT, "iss": ""}), STATE) == AuthorizationCode(
        "c0de", STATE, ""
    )  # for the flow to refuse
    assert "c0de" not in repr(answer)
    assert STATE not in repr(answer)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "neither a code nor an error"),
        (f"code=&state={STATE}", "neither a code nor an error"),
        ("code=c0de", "lacks the state"),
        ("code=c0de&state=", "lacks the state"),
        ("code=c0de&state=another", "state of another login"),
        (f"code=c0de&state={STATE}x", "state of another login"),
        (f"code=c0de&state={STATE.upper()}", "state of another login"),
        ("code=c0de&state=%C3%A9", "state of another login"),
        (f"code=c0de&code=evil&state={STATE}", "'code' twice"),
        (f"code=c0de&state=x&state={STATE}", "'state' twice"),
        (f"code=c0de&state={STATE}&iss=a&iss=b", "'iss' twice"),
        (f"code=c0de&error=access_denied&state={STATE}", "both a code and an error"),
        ("error=access_denied", "lacks the state"),
        ("error=access_denied&state=another", "state of another login"),
        (f"code=%FF&state={STATE}", "can't be read"),
        ("a=1&" * 60 + f"code=c0de&state={STATE}", "can't be read"),
    ],
)
def test_what_is_no_answer(query: str, why: str) -> None:
    refusal = read_response(query, STATE)
    assert isinstance(refusal, InvalidResponse)
    assert why in refusal.why
    assert "c0de" not in refusal.why


@pytest.mark.parametrize("error", [*DENIALS, "made_up"])
def test_every_no_is_explained(error: str) -> None:
    said = {"error": error, "state": STATE, "error_description": "Ask\r\n your \x1b[31madmin\u202e.\0"}
    denial = read_response(urlencode(said), STATE)
    assert isinstance(denial, AuthorizationDenied)
    assert denial.why.endswith(f"({error}), and says “Ask your [31madmin”")
    assert denial.why.isprintable()
    assert denial.passing == (error in ("server_error", "temporarily_unavailable"))


@given(st.text(min_size=1), st.text())
def test_what_others_say_is_one_short_printable_line(error: str, text: str) -> None:
    denial = read_response(urlencode({"error": error, "state": STATE, "error_description": text}), STATE)
    assert isinstance(denial, AuthorizationDenied)
    assert denial.why.isprintable()
    assert len(denial.why) <= 600


@given(st.dictionaries(st.sampled_from(["code", "state", "error", "iss", "other"]), st.text(max_size=8)))
@example({"code": "x", "state": "\ud800"})
def test_only_the_state_opens(said: dict[str, str]) -> None:
    query = "&".join(f"{name}={value}" for name, value in said.items())
    verdict = read_response(query, STATE)
    assert isinstance(verdict, InvalidResponse)


@given(code=st.text(min_size=1), state=st.text(min_size=1), iss=st.none() | st.text())
def test_an_answer_comes_through_as_it_was_given(code: str, state: str, iss: str | None) -> None:
    said = {"code": code, "state": state} | ({} if iss is None else {"iss": iss})
    assert read_response(urlencode(said), state) == AuthorizationCode(code, state, iss)


# ---- what is pasted


@pytest.mark.parametrize("wrap", ["{}", "  {}\r", "'{}'", '"{}"', "<{}>", "\x1b[200~{}\x1b[201~", "{}#_=_"])
@pytest.mark.parametrize("head", [f"{URI}?", f"{URI.removeprefix('http://')}?", "?", ""])
def test_what_may_be_pasted(wrap: str, head: str) -> None:
    query = urlencode(RIGHT)
    pasted = pasted_query(wrap.format(head + query), URI)
    assert pasted == query


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c0de",
        URI,
        f"https://as.example/authorize?response_type=code&state={STATE}",
        f"http://127.0.0.1:40002/callback?{urlencode(RIGHT)}",
        f"http://localhost:40001/callback?{urlencode(RIGHT)}",
        f"http://127.0.0.1:40001/callback/?{urlencode(RIGHT)}",
        f"http://127.0.0.1:40001/callback&{urlencode(RIGHT)}",
    ],
)
def test_what_may_not_be_pasted(text: str) -> None:
    refusal = pasted_query(text, URI)
    assert isinstance(refusal, InvalidResponse)
    assert f"begins with {URI}?" in refusal.why


# ---- the server


@dataclass
class Desk:
    """A callback that waits, and what it told the person."""

    callback: Callback
    told: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.callback.redirect_uri.removeprefix("http://").removesuffix("/callback")

    async def hear(self, raw: bytes) -> str:
        """What is answered to ``raw``, up to the end of the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.host.partition(":")[2]))
        try:
            writer.write(raw)
            async with asyncio.timeout(PATIENCE):
                return (await reader.read()).decode()
        finally:
            writer.close()
            await writer.wait_closed()

    async def browse(self, target: str, method: str = "GET", **headers: str) -> str:
        """As a browser asks. headers: of the request, with _ for -; "" leaves one out."""
        sent = {"Host": self.host, **{name.replace("_", "-"): text for name, text in headers.items()}}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in sent.items() if text)]
        return await self.hear("\r\n".join([*lines, "", ""]).encode())

    async def waits(self) -> bool:
        """Whether the login still waits, and its right answer still counts."""
        answering = asyncio.create_task(self.browse(f"/callback?{urlencode(RIGHT)}"))
        async with asyncio.timeout(PATIENCE):
            verdict = await self.callback.verdict()
        await self.callback.close(worked=True)
        return verdict == AuthorizationCode("c0de", STATE, None) and (await answering).startswith(
            "HTTP/1.1 200 "
        )


@asynccontextmanager
async def waiting(state: str | None = STATE, name: str = "tracker") -> AsyncIterator[Desk]:
    told: list[str] = []
    callback = await Callback.listen(name, told.append)
    if state is not None:
        callback.expect(state)
    try:
        yield Desk(callback, told)
    finally:
        await callback.close(worked=False)


BROWSER = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document", "Sec_Fetch_Site": "cross-site"}


@pytest.mark.parametrize("headers", [{}, BROWSER])
async def test_the_page_waits_for_how_the_login_ends(headers: dict[str, str]) -> None:
    async with waiting(name="<tracker>") as desk:
        page = asyncio.create_task(desk.browse(f"/callback?{urlencode({**RIGHT, 'iss': 'a'})}", **headers))
        assert await desk.callback.verdict() == AuthorizationCode("c0de", STATE, "a")
        assert not page.done()
        await desk.callback.close(worked=True)
        head, _, body = (await page).partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "Signed in to &lt;tracker&gt;" in body
    assert "You can close this window." in body
    assert desk.told == []
    for header in (
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "Content-Security-Policy: default-src 'none'; ",
        "X-Content-Type-Options: nosniff",
        f"Content-Length: {len(body.encode())}",
    ):
        assert f"\r\n{header}" in head
    assert not re.search(r"<script|https?:|c0de", body)
    assert "prefers-color-scheme: dark" in body


async def test_a_login_that_fails_after_all_says_so() -> None:
    async with waiting() as desk:
        page = asyncio.create_task(desk.browse(f"/callback?{urlencode(RIGHT)}"))
        await desk.callback.verdict()
        await desk.callback.close(worked=False)
        shown = await page
    assert shown.startswith("HTTP/1.1 502 ")
    assert "tracker could not be signed in to. The terminal says why." in shown


@pytest.mark.parametrize(
    ("status", "why", "target", "headers"),
    [
        (400, "state of another login", "/callback?code=c0de&state=guessed", {}),
        (400, "lacks the state", "/callback?code=c0de", {}),
        (400, "neither a code nor an error", "/callback", {}),
        (404, "nothing here but /callback", "/", {}),
        (404, "nothing here but /callback", f"/callback/x?{urlencode(RIGHT)}", {}),
        (421, "another host", f"/callback?{urlencode(RIGHT)}", {"Host": "rebound.example"}),
        (421, "another host", f"/callback?{urlencode(RIGHT)}", {"Host": "localhost:40001"}),
        (421, "another host", f"/callback?{urlencode(RIGHT)}", {"Host": ""}),
        (403, "part of a page", f"/callback?{urlencode(RIGHT)}", {"Sec_Fetch_Mode": "no-cors"}),
        (403, "part of a page", f"/callback?{urlencode(RIGHT)}", {"Sec_Fetch_Mode": "cors"}),
        (403, "part of a page", f"/callback?{urlencode(RIGHT)}", {**BROWSER, "Sec_Fetch_Dest": "iframe"}),
        (403, "part of a page", f"/callback?{urlencode(RIGHT)}", {**BROWSER, "Sec_Fetch_Dest": "image"}),
        (403, "another origin", f"/callback?{urlencode(RIGHT)}", {"Origin": "https://evil.example"}),
        (403, "another origin", f"/callback?{urlencode(RIGHT)}", {"Origin": "null"}),
    ],
)
async def test_what_is_refused_leaves_the_login_waiting(
    status: int, why: str, target: str, headers: dict[str, str]
) -> None:
    async with waiting() as desk:
        for _ in range(2):
            shown = await desk.browse(target, **headers)
            assert shown.startswith(f"HTTP/1.1 {status} ")
            assert why in shown
            assert "The login goes on waiting" in shown
        (told,) = desk.told  # once, however often it comes
        assert why in told
        assert "Still waiting." in told
        assert "c0de" not in told
        assert await desk.waits()


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "PUT"])
async def test_other_methods_are_refused(method: str) -> None:
    async with waiting() as desk:
        shown = await desk.browse(f"/callback?{urlencode(RIGHT)}", method)
        assert shown.startswith("HTTP/1.1 405 ")
        assert "\r\nAllow: GET\r\n" in shown
        assert await desk.waits()


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (431, b"GET /callback?code=" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n"),
        (431, b"GET /callback HTTP/1.1\r\nCookie: " + b"x" * 200_000 + b"\r\n\r\n"),
        (400, b"hello\r\n\r\n"),
        (400, b"GET http://127.0.0.1/callback HTTP/1.1\r\n\r\n"),
        (400, b"GET /callback HTTP/2\r\n\r\n"),
        (400, b"GET /callback?\xff HTTP/1.1\r\n\r\n"),
        (400, b"GET /callback HTTP/1.1\r\nnothing\r\n\r\n"),
        (400, b"GET /callback HTTP/1.1\r\nHost: a\r\n Host: b\r\n\r\n"),
        (400, b"GET /callback HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\r\n\r\n"),
    ],
)
async def test_what_is_no_request_is_refused(status: int, raw: bytes) -> None:
    async with waiting() as desk:
        assert (await desk.hear(raw)).startswith(f"HTTP/1.1 {status} ")
        assert await desk.waits()


async def test_a_header_is_not_smuggled_past_its_first_value() -> None:
    async with waiting() as desk:
        target = f"/callback?{urlencode(RIGHT)}"
        raw = f"GET {target} HTTP/1.1\r\nHost: {desk.host}\r\nHost: evil.example\r\n\r\n".encode()
        assert "a header twice" in await desk.hear(raw)
        assert await desk.waits()


async def test_only_the_first_answer_counts() -> None:
    async with waiting() as desk:
        first = asyncio.create_task(desk.browse(f"/callback?{urlencode(RIGHT)}"))
        assert await desk.callback.verdict() == AuthorizationCode("c0de", STATE, None)
        second = await desk.browse(f"/callback?{urlencode({**RIGHT, 'code': 'evil'})}")
        assert second.startswith("HTTP/1.1 409 ")
        assert "only the first answer counts" in second
        desk.callback.paste(urlencode({**RIGHT, "code": "evil"}))
        assert await desk.callback.verdict() == AuthorizationCode("c0de", STATE, None)
        await desk.callback.close(worked=True)
        assert (await first).startswith("HTTP/1.1 200 ")
    assert desk.told == []


async def test_a_no_ends_the_login_and_is_shown_harmless() -> None:
    said = {"error": "access_denied", "error_description": "<script>alert(1)</script>", "state": STATE}
    async with waiting() as desk:
        shown = await desk.browse(f"/callback?{urlencode(said)}")
        denial = await desk.callback.verdict()
    assert shown.startswith("HTTP/1.1 403 ")
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert isinstance(denial, AuthorizationDenied)
    assert "said no (access_denied)" in denial.why


async def test_a_pasted_answer_is_judged_the_same() -> None:
    async with waiting() as desk:
        desk.callback.paste("https://as.example/authorize?client_id=x")
        desk.callback.paste("code=c0de&state=guessed")
        assert "begins with http://127.0.0.1:" in desk.told[0]
        assert "state of another login" in desk.told[1]
        assert all("Paste it again" in told for told in desk.told)
        desk.callback.paste(f"{desk.callback.redirect_uri}?{urlencode(RIGHT)}\n")
        assert await desk.callback.verdict() == AuthorizationCode("c0de", STATE, None)


async def test_nothing_counts_before_anybody_is_asked_and_an_older_login_no_more() -> None:
    async with waiting(state=None) as desk:
        shown = await desk.browse(f"/callback?{urlencode(RIGHT)}")
        assert "Nobody is signing in yet" in shown
        desk.callback.expect("another")
        assert "state of another login" in await desk.browse(f"/callback?{urlencode(RIGHT)}")
        desk.callback.expect(STATE)
        assert await desk.waits()


async def test_the_icon_that_browsers_ask_for_is_not_worth_a_word() -> None:
    async with waiting() as desk:
        assert (await desk.browse("/favicon.ico")).startswith("HTTP/1.1 404 ")
        assert desk.told == []


async def test_connections_that_say_nothing_keep_nobody_waiting() -> None:
    async with waiting() as desk:
        idle = [await asyncio.open_connection("127.0.0.1", int(desk.host[10:])) for _ in range(3)]
        assert await desk.waits()
        for reader, writer in idle:
            assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize("said", [b"", b"GET /callback"])
async def test_to_close_with_an_open_connection_is_no_news(said: bytes) -> None:
    """Python 3.11 printed a traceback: it looks at a task of its own that was cancelled."""
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    async with waiting() as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(desk.host.partition(":")[2]))
        writer.write(said)
        await desk.browse("/favicon.ico")  # whoever came before is connected by now
    assert await reader.read() == b""
    writer.close()
    await asyncio.sleep(0)
    assert heard == []


async def test_the_port_that_is_asked_for() -> None:
    async with waiting() as desk:
        port = int(desk.host[10:])
        with pytest.raises(LoginError, match=rf'Port {port}, .* is in use\. .*"callback_port"'):
            await Callback.listen("tracker", print, port)
        other = await Callback.listen("tracker", print, rather=port)
        assert other.redirect_uri != desk.callback.redirect_uri
        await other.close(worked=False)
    again = await Callback.listen("tracker", print, rather=port)
    assert again.redirect_uri == desk.callback.redirect_uri
    await again.close(worked=False)
