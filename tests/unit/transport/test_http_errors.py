"""What a server that refuses over HTTP says of it."""

import httpx
import pytest

from mcpzip.transport.http_errors import refusal, words_in

TEXT, JSON, HTML = "text/plain; charset=utf-8", "application/json", "text/html"


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (TEXT, b"Access is only allowed at localhost:8932\n", "Access is only allowed at localhost:8932"),
        (TEXT, b'JSON RPC not handled: "foo/bar"', 'JSON RPC not handled: "foo/bar"'),
        ("", b"no session", "no session"),
        (JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no such host"}}', "no such host"),
        (JSON, b'{"error":"invalid_token","error_description":"it is too old"}', "it is too old"),
        (JSON, b'{"error":"slow down"}', "slow down"),
        (JSON, b'{"message":"go away"}', "go away"),
        ("application/problem+json", b'{"title":"Bad","detail":"the id is no id"}', "the id is no id"),
        (JSON, b'"just so"', "just so"),
        (JSON, b"not JSON at all", "not JSON at all"),
        (JSON, b'{"error":{"error":{"error":{"message":"too deep"}}}}', ""),
        (JSON, b"[1]", ""),
        (HTML, b"<h1>403</h1>", ""),
        (TEXT, b"<!doctype html><h1>403</h1>", ""),
        ("application/octet-stream", b"\x00\x01", ""),
        (TEXT, b"\xff\xfe", ""),
    ],
)
def test_its_words_are_found_where_they_stand(kind: str, body: bytes, words: str) -> None:
    assert words_in(body, kind) == words


def answer(status: int, phrase: str, body: bytes = b"", kind: str = TEXT) -> str:
    headers = {"content-type": kind}
    response = httpx.Response(status, headers=headers, extensions={"reason_phrase": phrase.encode()})
    return refusal(response, body)


def test_the_words_of_a_refusal_are_quoted_and_ours_are_not() -> None:
    """`403 Access is only allowed at localhost:8932` became "It refuses these credentials"."""
    said = b"Access is only allowed at localhost:8932"
    expected = "it answered HTTP 403 Forbidden: “Access is only allowed at localhost:8932”"
    assert answer(403, "Forbidden", said) == expected
    assert answer(400, "Bad Request") == "it answered HTTP 400 Bad Request"
    assert answer(400, "Bad Request", b"Bad Request") == "it answered HTTP 400 Bad Request"
    assert answer(500, "") == "it answered HTTP 500"


def test_a_reason_phrase_of_its_own_is_quoted_too() -> None:
    """It stood there as if we said it."""
    assert answer(500, "All is well") == "it answered HTTP 500 “All is well”"
    assert answer(799, "So") == "it answered HTTP 799 “So”"


def test_what_it_says_is_one_line_and_cut() -> None:
    shown = answer(500, "Internal Server Error", b"a\nshop: connected, 3 tools\x1b[2J" + b"x" * 5000)
    assert shown.isprintable()
    assert "a shop: connected" in shown
    assert len(shown) < 300
