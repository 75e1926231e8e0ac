"""The client gets what the upstream sent, and the upstream what the client sent.

Both ends are ours and carry bytes (`mirror_server`, `raw_client`); between them is one `mcpzip serve` as its
users run it. Where both legs are stdio the bytes are the same. Where one is HTTP it is the same JSON: key
order kept, integers exact, integers and fractions apart.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import driver
from helpers.driver import until, write_config
from helpers.mirror_server import mirroring
from helpers.odd_json import any_json, any_string, errors, objects, plain_json, plain_string, results
from helpers.raw_client import Downstream, OverHttp, OverStdio, Reply, begin, listening_at, serving
from hypothesis import example, given

MIRROR = driver.ROOT / "tests" / "helpers" / "mirror_server.py"
UPSTREAMS = ("stdio", "json", "stream", "sse")
"""The transports behind mcpzip: a process, Streamable HTTP that answers JSON or an event stream, HTTP+SSE."""
OVER_HTTP = UPSTREAMS[1:]


# Meaning


def meaning(text: bytes | str) -> object:
    """A text's value: members in order, integers by their digits, other numbers by their double."""
    return json.loads(
        text,
        object_pairs_hook=lambda pairs: ("object", list(dict(pairs).items())),
        parse_int=lambda digits: ("integer", str(int(digits))),
        parse_float=lambda digits: ("fraction", repr(float(digits))),
        parse_constant=_refuse,
    )


def members(response: bytes) -> dict[str, object]:
    """The members of a response, each as its meaning."""
    kind, pairs = meaning(response)
    assert kind == "object"
    return dict(pairs)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


# The proxy


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("differential")
    with mirroring() as port:
        url = f"http://127.0.0.1:{port}"
        servers = {
            "stdio": {"command": sys.executable, "args": [str(MIRROR)]},
            "json": {"type": "http", "url": f"{url}/json"},
            "stream": {"type": "http", "url": f"{url}/stream"},
            "sse": {"type": "sse", "url": f"{url}/sse"},
        }
        yield write_config(folder, others=servers, results="off")


@pytest.fixture(scope="module")
def stdio(config: Path) -> Iterator[Downstream]:
    with serving(config) as process:
        client = OverStdio(process)
        begin(client)
        yield client


@pytest.fixture(scope="module")
def modern(config: Path) -> Iterator[Downstream]:
    with serving(config) as process:
        yield OverStdio(process)


@pytest.fixture(scope="module")
def http(config: Path) -> Iterator[Downstream]:
    with serving(config, "--http", "127.0.0.1:0") as process:
        client = OverHttp(until(lambda: listening_at(config, process)))
        begin(client)
        yield client
        client.close()


def execute(client: Downstream, upstream: str, tool: str, arguments: str, meta: str = "") -> Reply:
    """A tool called through `execute_tool`."""
    call = f'"name":"execute_tool","arguments":{{"name":"{upstream}__{tool}","arguments":{arguments}}}'
    return client.ask("tools/call", f"{{{call}{meta}}}".encode())


def mirrored(client: Downstream, upstream: str, meta: str = "", **told: str) -> Reply:
    """What comes back when the upstream says this ``result`` or ``error``."""
    return execute(client, upstream, "mirror", json.dumps(told), meta)


def seen(client: Downstream, upstream: str, arguments: str) -> str:
    """The request for which the upstream takes a call with these arguments."""
    _, response = execute(client, upstream, "seen", arguments)
    return json.loads(response)["result"]["content"][0]["text"]


def pairings(stdio: Downstream, http: Downstream) -> list[tuple[Downstream, str]]:
    """Every way through mcpzip with HTTP on it."""
    return [(stdio, upstream) for upstream in OVER_HTTP] + [(http, upstream) for upstream in UPSTREAMS]


# Results


def structured(text: str) -> str:
    return f'{{"structuredContent":{text}}}'


deep = "[" * 400 + '{"a":-0}' + "]" * 400
less_deep = "[" * 150 + '{"a":-0}' + "]" * 150
"""As deep as the SDK reads."""
_LONG, _MANY = "x😀\\u20ac€\\n" * 320_000, "1E+2,9007199254740993,-0.0,null," * 8_000
huge = structured(f'["{_LONG}",{_MANY}{{}}]')
"""More than 5 MB."""


@given(results(any_json))
@example(structured(deep))
@example(structured("9" * 5000))
@example(huge)
def test_a_result_is_the_same_bytes_over_stdio(stdio: Downstream, result: str) -> None:
    number, line = mirrored(stdio, "stdio", result=result)
    assert line == b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (number, result.encode())


@given(results(plain_json))
@example(structured(less_deep))
@example(huge)
def test_a_result_is_the_same_json_over_http(stdio: Downstream, http: Downstream, result: str) -> None:
    sent = meaning(result)
    for client, upstream in pairings(stdio, http):
        assert members(mirrored(client, upstream, result=result).text)["result"] == sent, (client, upstream)


@given(results(any_json))
@example('{"_meta":{"a":1E+2},"resultType":"complete"}')
def test_a_modern_client_gets_what_its_era_requires_added_and_nothing_else(
    modern: Downstream, result: str
) -> None:
    number, line = mirrored(modern, "stdio", STAMP, result=result)
    start = b'{"jsonrpc":"2.0","id":%d,"result":' % number
    assert line.startswith(start)
    got, sent = (without_era(dict(meaning(text)[1])) for text in (line[len(start) : -2], result))
    assert list(got.items()) == list(sent.items())


STAMP = ',"_meta":' + json.dumps(driver.STAMP)


def without_era(result: dict[str, object]) -> dict[str, object]:
    """A result's members without what the modern era adds (2026-07-28 `basic/index`)."""
    kept = {key: value for key, value in result.items() if (key, value) != ("resultType", "complete")}
    match kept.pop("_meta", None):
        case ("object", pairs):
            kept["_meta"] = [pair for pair in pairs if pair[0] != f"{driver.META}serverInfo"]
    return kept if kept.get("_meta") else {key: value for key, value in kept.items() if key != "_meta"}


# Errors


@given(errors(any_string, any_json))
def test_an_error_is_the_same_over_stdio(stdio: Downstream, error: str) -> None:
    _, line = mirrored(stdio, "stdio", error=error)
    assert members(line)["error"] == meaning(error)
    _, found, data = error.partition(',"data":')
    assert line.endswith(f"{found}{data}}}\n".encode())


@given(errors(plain_string, plain_json))
def test_an_error_is_the_same_json_over_http(stdio: Downstream, http: Downstream, error: str) -> None:
    sent = meaning(error)
    for client, upstream in pairings(stdio, http):
        assert members(mirrored(client, upstream, error=error).text)["error"] == sent, (client, upstream)


# Arguments


@given(objects(any_string, any_json, doubled=True))
def test_arguments_arrive_as_the_same_bytes_over_stdio(stdio: Downstream, arguments: str) -> None:
    assert f'"arguments":{arguments}' in seen(stdio, "stdio", arguments)


@given(objects(plain_string, plain_json, doubled=False))
def test_arguments_arrive_as_the_same_json_over_http(
    stdio: Downstream, http: Downstream, arguments: str
) -> None:
    sent = meaning(arguments)
    for client, upstream in pairings(stdio, http):
        params = members(seen(client, upstream, arguments).encode())["params"]
        assert dict(params[1])["arguments"] == sent, (client, upstream)
