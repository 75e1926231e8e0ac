"""Secrets become masks, the same one always the same, and every other byte stays as it is."""

import base64
import json
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.cassettes.cassette import Masked
from mcpzip.cassettes.json_strings import NotJsonError, decoded, original_offsets, tokens
from mcpzip.cassettes.masking import Masker
from mcpzip.cassettes.secret_names import is_secret

SECRET = "seed3d-Zx81-value"
PEM = "PRIVATE " + "KEY"
"""So that nothing takes this file for one that holds a key."""


def masked(message: object, **settings: object) -> object:
    """A JSON message with its secrets masked."""
    found: list[Masked] = []
    text = Masker(found=found.append, **settings).message(json.dumps(message).encode(), "request 1")  # type: ignore[arg-type]
    return json.loads(text)


# What is masked


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"token": "abc-123-x"}, {"token": "[masked 1]"}),
        ({"apiKey": "Zk81mQ02"}, {"apiKey": "[masked 1]"}),
        ({"apiKey": "81mQ02.a7b8c9d0e1"}, {"apiKey": "[masked 1]"}),
        ({"password": "swordfish"}, {"password": "[masked 1]"}),
        ({"db_password": 12345678}, {"db_password": "[masked 1]"}),
        ({"Authorization": "Bearer abc-123-x"}, {"Authorization": "Bearer [masked 1]"}),
        ({"Authorization": ["Bearer abc-123-x"]}, {"Authorization": ["Bearer [masked 1]"]}),
        ({"headers": {"X-Api-Key": "abc-123-x"}}, {"headers": {"X-Api-Key": "[masked 1]"}}),
        ({"name": "API_KEY", "value": "abc-123-x"}, {"name": "API_KEY", "value": "[masked 1]"}),
        ({"sessionId": "0f8b2c4d6e8f0a1b"}, {"sessionId": "[masked 1]"}),
        ({"text": '{"token": "abc-123-x"}'}, {"text": '{"token": "[masked 1]"}'}),
        ({"text": '{"password": 1234567}'}, {"text": '{"password": "[masked 1]"}'}),
        ({"text": "GITHUB_TOKEN=abc-123-x\nHOME=/root"}, {"text": "GITHUB_TOKEN=[masked 1]\nHOME=/root"}),
        ({"text": "run it --api-key abc-123-x now"}, {"text": "run it --api-key [masked 1] now"}),
        ({"text": "see postgres://app:hun%40ter@db/x"}, {"text": "see postgres://app:[masked 1]@db/x"}),
        ({"text": "//x.test/?auth_token=abc-123-x&a=1"}, {"text": "//x.test/?auth_token=[masked 1]&a=1"}),
        ({"text": "\nsk-proj-abcdefgh12345678 is it"}, {"text": "\n[masked 1] is it"}),
        ({"text": f"x -----BEGIN {PEM}-----\nMIIE\n-----END {PEM}----- y"}, {"text": "x [masked 1] y"}),
        ({"text": "Basic " + base64.b64encode(b"me:pw12").decode()}, {"text": "Basic [masked 1]"}),
    ],
)  # fmt: skip
def test_named_values_and_what_looks_like_a_key_are_masked(message, expected):
    assert masked(message) == expected


@pytest.mark.parametrize(
    "key",
    [
        "sk-" + "abcdEFGH12345678",
        "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_" + "11ABCDEFG0123456789_abcdefghijklmnop",
        "glpat-" + "Zx81kQmL02vR7yTn4wPs",
        "xoxb-" + "123456789012-abcdefGHIJ",
        "AKIA" + "IOSFODNN7EXAMPL3",
        "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
        "npm_" + "abcdefghijklmnopqrst0123456789ABCDEF",
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ],
)
def test_keys_are_known_by_their_form(key):
    for text in (key, f"it is {key}.", f'"{key}"', f"\n{key}\n", f"a%3D{key}", json.dumps({"k": f"\t{key}"})):
        masker = Masker()
        assert key not in masker.text(text, "x")
        assert key.encode() not in masker.message(json.dumps({"text": text}).encode(), "x")


@pytest.mark.parametrize(
    "message",
    [
        {"_meta": {"progressToken": "8d1f3b2c-66aa-4b1e-9a3e-0123456789ab"}},
        {"nextCursor": "eyJvZmZzZXQiOjIw", "nextPageToken": "CAUQAA123456", "cursor": "abc123def456"},
        {"key": "name", "sort_key": "PROJ-123", "primaryKey": "id", "key2": "customfield_10021"},
        {"maxTokens": 4096, "usage": {"prompt_tokens": 12, "total_tokens": 99999999}},
        {"token_endpoint": "https://auth.test/token", "tokenType": "Bearer", "token_type": "bearer"},
        {"logprobs": [{"token": "Hello"}, {"token": " world"}, {"token": "!"}]},
        {"properties": {"token": {"type": "string", "description": "An API token (see your account)"}}},
        {"properties": {"password": {"type": "string"}}, "required": ["password", "apiKey"]},
        {"text": "Pass the token: it is required. Session: 5 minutes. key=value; task-list-of-things-12345"},
        {"text": "Bearer authentication with Basic credentials, see https://user.test/a@b?page=2"},
        {"author": "Ada Lovelace 1815", "authorId": "u-18151210"},
        {"apiKey": "${API_KEY}", "secret": "<your secret>", "token": "***"},
        {"password": "[masked 7]"},
        {"private": True, "auth": "oauth2", "signature": "def f(x: int) -> str"},
        {"image": base64.b64encode(bytes(range(256))).decode(), "mimeType": "image/png"},
        {"PWD": "/home/ada/project1"},
        {"cookie": "^0.7.1", "auth-token": ">=4.0.0 <5.0.0-beta.1", "tokenize": "v1.2.3"},
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(message):
    assert masked(message) == message


def test_a_given_value_is_masked_in_every_encoding():
    value = 'tök/en+"1\n%&z'
    forms = [
        value,
        json.dumps(value),
        json.dumps(json.dumps(value)),
        json.dumps(value, ensure_ascii=False),
        quote(value, safe=""),
        value.encode().hex(),
        base64.b64encode(f"me:{value}".encode()).decode(),
        "".join(f"\\u{ord(char):04x}" for char in value),
        "".join(f"&#{ord(char)};" for char in value),
    ]
    for form in forms:
        for text in (form, json.dumps({"text": form}), json.dumps({"text": json.dumps({"a": form})})):
            shown = Masker({value: "given"}).message(text.encode(), "x").decode()
            assert "[masked 1]" in shown
            assert "[masked 2]" not in shown
            assert "k/en" not in shown


def test_the_same_secret_has_the_same_mask_in_all_messages():
    masker = Masker()
    first = masker.message(b'{"token":"abc-123-x"}', "request 1")
    second = masker.message(b'{"result":"is abc-123-x good?","password":"other-9"}', "request 2")
    assert first == b'{"token":"[masked 1]"}'
    assert second == b'{"result":"is [masked 1] good?","password":"[masked 2]"}'
    assert masker.header("x-api-key", "abc-123-x", "request 3") == "[masked 1]"


def test_paths_that_were_given_are_masked_with_what_is_below():
    message = {"params": {"arguments": {"pin": 17, "who": {"a": "x", "b": [1, True]}}, "name": "pay"}}
    assert masked(message, paths=["params.arguments.*"]) == {
        "params": {
            "arguments": {"pin": "[masked 1]", "who": {"a": "[masked 2]", "b": ["[masked 3]", True]}},
            "name": "pay",
        }
    }


def test_a_number_that_is_a_given_secret_becomes_a_string():
    assert masked({"a": 87654321, "b": [87654321]}, values={"87654321": "given"}) == {
        "a": "[masked 1]",
        "b": ["[masked 1]"],
    }


def test_a_given_json_object_leaves_valid_json():
    key = {"type": "service_account", "private_key_id": "0a1b2c3d4e5f", "private_key": "MIIabc123def456"}
    shown = masked({"creds": key}, values={json.dumps(key): "the variable GOOGLE_CREDENTIALS"})
    assert "0a1b2c3d4e5f" not in json.dumps(shown)
    assert "MIIabc123def456" not in json.dumps(shown)


def test_headers():
    masker = Masker()
    shown = {
        name: masker.header(name, value, "request 1")
        for name, value in {
            "Authorization": "Bearer swordfish",
            "Cookie": "a=one; b=two",
            "Set-Cookie": "sid=abc; Path=/; Expires=Wed, 21 Oct 2026, b=cde",
            "Mcp-Session-Id": "0f8b2c4d6e8f0a1b0f8b2c4d6e8f0a1b",
            "X-Auth": "zz81-mm22-kk33qq44",
            "Content-Type": "application/json",
            "Mcp-Protocol-Version": "2025-06-18",
            "WWW-Authenticate": 'Bearer resource_metadata="https://x.test/a1", error="invalid_token"',
            "Access-Control-Allow-Headers": "authorization, mcp-session-id",
            "X-RateLimit-Remaining-Tokens": "15000",
        }.items()
    }
    assert shown == {
        "Authorization": "Bearer [masked 1]",
        "Cookie": "a=[masked 2]; b=[masked 3]",
        "Set-Cookie": "sid=[masked 4]; Path=/; Expires=Wed, 21 Oct 2026, b=[masked 5]",
        "Mcp-Session-Id": "[masked 6]",
        "X-Auth": "[masked 7]",
        "Content-Type": "application/json",
        "Mcp-Protocol-Version": "2025-06-18",
        "WWW-Authenticate": 'Bearer resource_metadata="https://x.test/a1", error="invalid_token"',
        "Access-Control-Allow-Headers": "authorization, mcp-session-id",
        "X-RateLimit-Remaining-Tokens": "15000",
    }


def test_urls_and_command_lines():
    masker = Masker()
    url = "https://me:pw-9@x.test/s/0f8b2c4d6e8f0a1b2c/mcp?apiKey=kk-77-zz&code=Xy81-zz&page=2"
    shown = masker.url(url, "the URL")
    assert (
        shown
        == "https://[masked 1]:[masked 2]@x.test/s/[masked 3]/mcp?apiKey=[masked 4]&code=[masked 5]&page=2"
    )
    words = ["srv", "--api-key", "kk-77-zz", "--token=qq-88-yy", "--dir", "/tmp/a1", "-H"]
    shown = masker.command([*words, "X-Api-Key: pp-99-ww"], "the command")
    expected = "srv --api-key [masked 4] --token=[masked 6] --dir /tmp/a1 -H X-Api-Key: [masked 7]"
    assert " ".join(shown) == expected


def test_a_private_key_on_several_lines_of_stderr():
    masker = Masker()
    lines = [f"-----BEGIN RSA {PEM}-----", "MIIEow", "", "abc=", f"-----END RSA {PEM}-----", "started"]
    shown = [masker.line(line.encode(), "stderr").decode() for line in lines]
    assert shown[2] == ""
    assert shown[5] == "started"
    assert not {"MIIEow", "abc="} & set(shown)


def test_each_mask_is_told_once_with_its_place_and_reason():
    found: list[Masked] = []
    masker = Masker({SECRET: "the variable API_TOKEN"}, found=found.append)
    masker.message(
        json.dumps({"params": {"a": [f"x{SECRET}", {"token": "abc-123-x"}]}}).encode(), "request 3"
    )
    masker.line(f"{SECRET} abc-123-x".encode(), "stderr")
    assert found == [
        Masked(mask="[masked 1]", where="request 3: params.a.0", why="the variable API_TOKEN"),
        Masked(mask="[masked 2]", where="request 3: params.a.1.token", why="it is named token"),
    ]


def test_the_told_place_holds_no_secret():
    found: list[Masked] = []
    masker = Masker({SECRET: "given"}, found=found.append)
    masker.message(
        json.dumps({SECRET: {"token": "abc-123-x"}, "z": {f"{SECRET}-token": "q1-w2-e3"}}).encode(), "r"
    )
    assert SECRET not in repr(found)
    assert len(found) == 3


def test_numbers_go_on_after_those_of_the_cassette():
    masker = Masker(known=[Masked(mask="[masked 4]", where="", why="")])
    assert masker.message(b'{"token":"abc-123-x"}', "x") == b'{"token":"[masked 5]"}'


# Nothing else is changed

keys = st.text('abc\\"é', max_size=4)
texts = st.text(string.ascii_letters + ' \\"/\n\té😀', max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_a_message_without_a_secret_is_returned_as_it_is(value, ascii, indent):
    data = json.dumps(value, ensure_ascii=ascii, indent=indent).encode()
    assert Masker({SECRET: "given"}).message(data, "x") == data


@given(st.binary(max_size=60))
def test_any_bytes_are_accepted(data):
    assert Masker().message(data, "x") == data or b"[masked" in Masker().message(data, "x")


def inserted(value, secret, draw):
    """``value`` with the secret in some of its strings and numbers, and how often."""
    if isinstance(value, list):
        return [inserted(each, secret, draw) for each in value]
    if isinstance(value, dict):
        return {key: inserted(each, secret, draw) for key, each in value.items()}
    if isinstance(value, str) and draw(st.booleans()):
        return f"{value}{secret}"
    return value


@given(values, st.booleans(), st.data(), st.text(string.printable, min_size=6, max_size=12))
def test_a_secret_never_survives_and_the_json_stays_valid(value, ascii, data, secret):
    secret = secret.strip()
    assume(len(secret) >= 6 and not secret.isspace() and secret not in "[masked 1]")
    data_in = json.dumps(inserted([value, "x"], secret, data.draw), ensure_ascii=ascii).encode()
    shown = Masker({secret: "given"}).message(data_in, "x")
    assert secret not in repr_of(json.loads(shown))
    if secret not in repr_of(json.loads(data_in)):
        return
    assert b"[masked 1]" in shown
    assert Masker({secret: "given"}).message(shown, "x") == shown


def repr_of(value):
    """All texts in a JSON value, each on a line of its own."""
    if isinstance(value, list):
        return "\0".join(map(repr_of, value))
    if isinstance(value, dict):
        return "\0".join(f"{key}\0{repr_of(each)}" for key, each in value.items())
    return value if isinstance(value, str) else ""


# The walk


@given(values, st.booleans())
def test_the_walk_gives_every_string_in_order(value, ascii):
    text = json.dumps(value, ensure_ascii=ascii)
    found = [decoded(text[token.start : token.stop]) for token in tokens(text) if token.is_string]
    assert found == list(strings_of(value))


def strings_of(value):
    if isinstance(value, str):
        yield value
    for key, each in value.items() if isinstance(value, dict) else ():
        yield key
        yield from strings_of(each)
    for each in value if isinstance(value, list) else ():
        yield from strings_of(each)


@given(st.text('a\\"é😀\n', max_size=12), st.booleans(), st.data())
def test_offsets_in_a_value_are_found_in_its_text(value, ascii, data):
    content = json.dumps(value, ensure_ascii=ascii)[1:-1]
    wanted = sorted(data.draw(st.sets(st.integers(0, len(value)))))
    assert [decoded(content[:offset]) for offset in original_offsets(content, wanted)] == [
        value[:offset] for offset in wanted
    ]


@pytest.mark.parametrize(
    "text", ["", "{", '{"a":1}}', "[1", "hello", '"a" "b"x', "{]", "[" * 600 + "]" * 600]
)
def test_what_is_no_json(text):
    with pytest.raises(NotJsonError):
        list(tokens(text))


# Bounded work


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 88_000,
        "sk-" * 88_000,
        "token=" * 38_000,
        "key=" * 63_000,
        "://a:" * 50_000,
        "-----BEGIN " * 25_000,
        f"-----BEGIN {PEM}-----" * 10_000,
        "Bearer " * 38_000,
        "\\u0041" * 38_000,
        "\\" * 250_000,
        "&amp;" * 38_000,
        "--token " * 31_000,
        "[" * 250_000,
        "a" * 250_000,
        json.dumps(["x"] * 38_000),
        json.dumps({"token": ["a1-b2-c3"] * 13_000}),
        json.dumps("\\" * 63_000),
        json.dumps(json.dumps(["a\\nb" * 10] * 1_500)),
    ],
    ids=lambda text: text[:12],
)
def test_the_work_is_linear(text):
    """A quarter of a megabyte of what would take a minute with anything quadratic."""
    masker = Masker({SECRET: "given", "Aaaaaaaa": "given", "AAAAAAAA1": "given"})
    began = time.process_time()
    masker.message(text.encode(), "x")
    assert time.process_time() - began < 2.5


def test_names():
    assert is_secret("Api-Key", "zz81mm22")
    assert is_secret("connectionString", "Endpoint=sb://x;Key=1")
    assert not is_secret("tokenizer", "cl100k_base1")
    assert not is_secret("x" * 200 + "token", "zz81mm22")
