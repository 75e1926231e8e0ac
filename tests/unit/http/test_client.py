"""What the HTTP client sends, and where it goes on to: a server is played without a socket."""

from collections.abc import AsyncGenerator, Iterator

import httpx
import pytest
import respx
from helpers.respx_connections import ConnectionsMocker

from mcpzip.http.client import REDIRECTS, Client, redirect_target
from mcpzip.model import limits
from mcpzip.wire.content_coding import CODINGS, ContentCodingError

URL = "https://mcp.example/mcp"
BODY = b'{"jsonrpc":"2.0"}'


@pytest.fixture
def server() -> Iterator[respx.MockRouter]:
    """Stands in for every server there is."""
    with respx.mock(assert_all_called=False, using=ConnectionsMocker.name) as router:
        yield router


def moved(status: int, target: str) -> httpx.Response:
    return httpx.Response(status, headers={"location": target})


async def sent(
    client: Client, method: str = "POST", *headers: tuple[bytes, bytes], url: str = URL
) -> httpx.Response:
    return await client.send(method, httpx.URL(url), headers, BODY if method == "POST" else None)


def seen(server: respx.MockRouter) -> list[tuple[str, str]]:
    return [(call.request.method, str(call.request.url)) for call in server.calls]


# ---- redirects


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("POST", 307),
        ("POST", 308),
        ("DELETE", 307),
        *(("GET", status) for status in (301, 302, 303, 307, 308)),
    ],
)
@pytest.mark.parametrize("target", ["/other", "https://mcp.example:443/other", "//mcp.example/other"])
async def test_a_redirect_within_the_origin_is_followed_as_the_same_request(
    server: respx.MockRouter, method: str, status: int, target: str
) -> None:
    server.route(url=URL).mock(moved(status, target))
    server.route(url="https://mcp.example/other").respond(200, content=b"there")
    client = Client(URL)
    response = await sent(client, method, (b"X-Team", b"a"))
    assert (response.status_code, await response.aread()) == (200, b"there")
    assert str(response.request.url) == "https://mcp.example/other"
    assert seen(server) == [(method, URL), (method, "https://mcp.example/other")]
    first, second = (call.request for call in server.calls)
    assert second.content == first.content == (BODY if method == "POST" else b"")
    assert second.headers["x-team"] == "a"
    await client.aclose()


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_make_a_post_a_get_is_not_followed(
    server: respx.MockRouter, status: int
) -> None:
    server.route().mock(moved(status, "/other"))
    client = Client(URL)
    response = await sent(client)
    assert response.status_code == status
    assert redirect_target(response) == httpx.URL("https://mcp.example/other")
    assert seen(server) == [("POST", URL)]
    await client.aclose()


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/mcp",
        "https://mcp.example.evil.example/mcp",
        "https://mcp.example:8443/mcp",
        "http://mcp.example/mcp",
        "http://mcp.example:443/mcp",
        "//evil.example/",
        "https://user:secret@mcp.example/mcp",
        "https://mcp.example@evil.example/mcp",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_redirect_elsewhere_is_not_followed(
    server: respx.MockRouter, target: str, method: str
) -> None:
    server.route().mock(moved(307, target))
    client = Client(URL)
    response = await sent(client, method)
    assert response.status_code == 307
    assert redirect_target(response) is not None
    assert seen(server) == [(method, URL)]
    await client.aclose()


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "javascript:alert(1)", "http://", "https://a:b/", "http://[::", "data:,"]
)
async def test_a_redirect_to_no_address_is_none(server: respx.MockRouter, target: str) -> None:
    server.route().mock(moved(307, target))
    client = Client(URL)
    response = await sent(client)
    assert response.status_code == 307
    assert redirect_target(response) is None
    assert seen(server) == [("POST", URL)]
    await client.aclose()


async def test_a_redirect_without_a_target_is_none(server: respx.MockRouter) -> None:
    server.route().respond(308)
    client = Client(URL)
    assert redirect_target(await sent(client)) is None
    await client.aclose()


async def test_a_redirect_to_tls_on_the_same_host_is_followed(server: respx.MockRouter) -> None:
    server.route(url="http://mcp.example/mcp").mock(moved(308, URL))
    server.route(url=URL).respond(200)
    client = Client("http://mcp.example/mcp")
    response = await sent(client, "POST", (b"Host", b"mcp.example:80"), url="http://mcp.example/mcp")
    assert response.status_code == 200
    assert [call.request.headers["host"] for call in server.calls] == ["mcp.example:80", "mcp.example"]
    await client.aclose()


@pytest.mark.parametrize(
    ("own", "target"),
    [
        ("http://mcp.example:8080/mcp", "https://mcp.example/mcp"),
        ("http://mcp.example/mcp", "https://mcp.example:8443/mcp"),
        ("http://mcp.example/mcp", "https://www.mcp.example/mcp"),
    ],
)
async def test_a_redirect_to_tls_at_another_port_or_host_is_not_followed(
    server: respx.MockRouter, own: str, target: str
) -> None:
    server.route().mock(moved(308, target))
    client = Client(own)
    assert (await sent(client, url=own)).status_code == 308
    assert seen(server) == [("POST", own)]
    await client.aclose()


async def test_so_many_redirects_are_followed_and_no_more(server: respx.MockRouter) -> None:
    """The last answer did not know its request, and to ask it where it redirects to failed."""
    server.route().mock(side_effect=lambda request: moved(307, f"{request.url.path}x"))
    client = Client(URL)
    response = await sent(client)
    assert len(server.calls) == 1 + REDIRECTS
    assert response.status_code == 307
    assert redirect_target(response) == httpx.URL(URL + "x" * (REDIRECTS + 1))
    await client.aclose()


async def test_the_last_redirect_that_is_followed_may_lead_to_an_answer(server: respx.MockRouter) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        found = request.url.path == "/mcp" + "x" * REDIRECTS
        return httpx.Response(200, content=b"there") if found else moved(307, f"{request.url.path}x")

    server.route().mock(side_effect=handle)
    client = Client(URL)
    response = await sent(client)
    assert (response.status_code, await response.aread()) == (200, b"there")
    await client.aclose()


# ---- cookies


async def test_cookies_come_back_to_where_they_are_from_only(server: respx.MockRouter) -> None:
    server.route(url=URL).respond(200, headers=[("set-cookie", "a=1"), ("set-cookie", "b=2; Path=/other")])
    server.route().respond(200, headers={"set-cookie": "evil=1; Domain=example"})
    client = Client(URL)
    for url in (URL, URL, "https://mcp.example/other", "https://evil.example/mcp"):
        await sent(client, url=url)
    cookies = [call.request.headers.get("cookie", "") for call in server.calls]
    assert cookies == ["", "a=1", "b=2; a=1", ""]
    await client.aclose()


async def test_a_cookie_of_a_redirect_goes_along(server: respx.MockRouter) -> None:
    """Some balancers redirect until their cookie is there."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.headers.get("cookie") == "way=7":
            return httpx.Response(200)
        return httpx.Response(307, headers={"location": "/mcp", "set-cookie": "way=7"})

    server.route().mock(side_effect=handle)
    client = Client(URL)
    assert (await sent(client)).status_code == 200
    assert len(server.calls) == 2
    await client.aclose()


async def test_cookies_beyond_the_limit_are_not_taken(server: respx.MockRouter) -> None:
    value = "x" * 1000
    server.route().mock(
        side_effect=lambda _: httpx.Response(200, headers={"set-cookie": f"c{len(server.calls)}={value}"})
    )
    client = Client(URL)
    for _ in range(3 * limits.COOKIES // len(value)):
        await sent(client)
    lengths = [len(call.request.headers.get("cookie", "")) for call in server.calls]
    assert lengths == sorted(lengths)
    assert lengths[-1] > limits.COOKIES / 2
    assert max(lengths) <= limits.COOKIES + len(value) + 10
    await client.aclose()


async def test_one_answer_can_not_bring_more_cookies_than_the_limit(server: respx.MockRouter) -> None:
    many = [("set-cookie", f"c{number}={'x' * 200}") for number in range(limits.HEADERS - 10)]
    server.route().respond(200, headers=many)
    client = Client(URL)
    for _ in range(2):
        await sent(client)
    assert len(server.calls[-1].request.headers.get("cookie", "")) <= limits.COOKIES
    await client.aclose()


async def test_cookies_for_paths_that_nobody_asks_for_are_not_kept_without_end(
    server: respx.MockRouter,
) -> None:
    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"set-cookie": f"c={'x' * 1000}; Path=/{len(server.calls)}"})

    server.route().mock(side_effect=handle)
    client = Client(URL)
    for _ in range(5 * limits.COOKIES // 1000):
        await sent(client)
    held = sum(len(cookie.value or "") for cookie in client._cookies.jar)
    assert held <= limits.COOKIES + 1000
    await client.aclose()


@pytest.mark.parametrize("cookie", [b"a=\xff", "a=é".encode(), b"\xe9=1"])
async def test_a_cookie_that_fits_no_header_breaks_no_later_request(
    server: respx.MockRouter, cookie: bytes
) -> None:
    """It was kept, and could not be sent: every request to the server failed from then on."""
    server.route().respond(200, headers=[(b"Set-Cookie", cookie), (b"Set-Cookie", b"b=2")])
    client = Client(URL)
    for _ in range(2):
        assert (await sent(client)).status_code == 200
    await client.aclose()


# ---- headers


async def test_what_is_accepted_is_ours_to_say(server: respx.MockRouter) -> None:
    server.route().respond(200)
    client = Client(URL)
    theirs = ((b"accept-encoding", b"br"), (b"Content-Length", b"7"), (b"Transfer-Encoding", b"chunked"))
    await sent(client, "POST", *theirs)
    headers = server.calls.last.request.headers
    assert headers.get_list("accept-encoding") == [CODINGS]
    assert headers.get_list("content-length") == [str(len(BODY))]
    assert "transfer-encoding" not in headers
    await client.aclose()


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [("POST", b"12", ["2"]), ("POST", b"", ["0"]), ("GET", b"", []), ("GET", None, []), ("DELETE", None, [])],
)
async def test_a_request_names_its_host_and_the_length_of_its_body(
    server: respx.MockRouter, method: str, body: bytes | None, length: list[str]
) -> None:
    server.route().respond(200)
    client = Client("https://mcp.example:8443/mcp")
    await (await client.send(method, client.url, (), body)).aclose()
    headers = server.calls.last.request.headers
    assert headers.get_list("host") == ["mcp.example:8443"]
    assert headers.get_list("content-length") == length
    await client.aclose()


async def test_a_host_that_is_given_takes_the_place_of_the_address_s(server: respx.MockRouter) -> None:
    server.route().respond(200)
    client = Client(URL)
    await sent(client, "POST", (b"hOst", b"inner.example"))
    assert server.calls.last.request.headers.get_list("host") == ["inner.example"]
    await client.aclose()


async def test_headers_go_out_as_the_bytes_they_are(server: respx.MockRouter) -> None:
    server.route().respond(200, headers=[(b"X-Back", b"\xff\xe9")])
    client = Client(URL)
    response = await sent(client, "POST", (b"X-Odd", b"\xff\xe9 z"), (b"X-Odd", b"again"))
    raw = server.calls.last.request.headers.raw
    assert [value for name, value in raw if name.lower() == b"x-odd"] == [b"\xff\xe9 z", b"again"]
    assert (b"X-Back", b"\xff\xe9") in response.headers.raw
    await client.aclose()


async def test_an_answer_with_more_header_fields_than_the_limit_fails(server: respx.MockRouter) -> None:
    server.route().mock(
        side_effect=[
            httpx.Response(200, headers=[("x", "y")] * limits.HEADERS),
            httpx.Response(200, headers=[("x", "y")] * (limits.HEADERS + 1)),
        ]
    )
    client = Client(URL)
    assert (await sent(client)).status_code == 200
    with pytest.raises(ContentCodingError, match=f"more than {limits.HEADERS} header fields"):
        await sent(client)
    await client.aclose()


async def test_a_user_and_a_password_in_the_address_are_shown_to_the_server(server: respx.MockRouter) -> None:
    """As httpx does it for an address like this (RFC 7617), unless the config has a header for that."""
    server.route().respond(200)
    url = "https://me:word@mcp.example/mcp"
    client = Client(url)
    await sent(client, url=url)
    await sent(client, "POST", (b"authorization", b"Bearer t"), url=url)
    shown = [call.request.headers.get_list("authorization") for call in server.calls]
    assert shown == [["Basic bWU6d29yZA=="], ["Bearer t"]]
    await client.aclose()


# ---- signing


class Signer(httpx.Auth):
    """Signs, and signs anew once after a refusal. heard: the answers that it was given, with their bodies."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, bytes | None]] = []

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        for token in ("old", "new"):
            request.headers["Authorization"] = token
            response = yield request
            self.heard.append((response.status_code, response.content if response.is_closed else None))
            if response.status_code not in (401, 403):
                return


def guarded(request: httpx.Request) -> httpx.Response:
    if request.headers["authorization"] == "new":
        return httpx.Response(200, content=b"in")
    return httpx.Response(401, content=b'{"error":"old"}', headers={"www-authenticate": "Bearer"})


async def test_a_refusal_is_read_and_the_request_signed_anew(server: respx.MockRouter) -> None:
    server.route().mock(side_effect=guarded)
    signer = Signer()
    client = Client(URL, signer)
    response = await sent(client)
    assert signer.heard == [(401, b'{"error":"old"}'), (200, None)]
    assert (response.status_code, await response.aread()) == (200, b"in")
    assert [call.request.content for call in server.calls] == [BODY, BODY]
    await client.aclose()


async def test_a_refusal_that_stands_is_returned_with_its_body(server: respx.MockRouter) -> None:
    server.route().respond(403, content=b"x" * (limits.REFUSAL + 1), headers={"content-encoding": "identity"})
    signer = Signer()
    client = Client(URL, signer)
    response = await sent(client)
    assert [status for status, _ in signer.heard] == [403, 403]
    assert await response.aread() == b"x" * limits.REFUSAL
    await client.aclose()


async def test_a_request_that_is_redirected_is_signed_again(server: respx.MockRouter) -> None:
    server.route(url=URL).mock(moved(307, "/other"))
    server.route(url="https://mcp.example/other").mock(side_effect=guarded)
    client = Client(URL, Signer())
    assert (await sent(client)).status_code == 200
    signed = [call.request.headers["authorization"] for call in server.calls]
    assert signed == ["old", "old", "new"]
    await client.aclose()


async def test_what_the_signer_raises_is_raised(server: respx.MockRouter) -> None:
    class Failing(httpx.Auth):
        async def async_auth_flow(
            self, request: httpx.Request
        ) -> AsyncGenerator[httpx.Request, httpx.Response]:
            if "authorization" not in request.headers:
                raise KeyError("no token")
            yield request

    server.route().respond(200)
    client = Client(URL, Failing())
    with pytest.raises(KeyError):
        await sent(client)
    assert len(server.calls) == 0
    await client.aclose()
