"""The balancer before replicas, and who calls a subject."""

import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import jwt
import msgspec
import pytest
from mcpzip_conformance.check_values import CheckValues
from mcpzip_conformance.checks.access_tokens import challenge, paths_of
from mcpzip_conformance.checks.clustered import says_truly
from mcpzip_conformance.cluster import Balancer, Replica
from mcpzip_conformance.declaration import Authorization
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.issuer import PEOPLE, Issuer
from mcpzip_conformance.raw_http import Response
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.subject import Subject

PORTS = (2001, 2002, 2003)


def replica(port: int) -> Replica:
    made = Replica(None)  # type: ignore[arg-type]  # it is never started
    made.listening = SimpleNamespace(url=f"http://127.0.0.1:{port}/mcp")  # type: ignore[assignment]
    return made


async def asked(balancer: Balancer, **headers: str) -> str:
    """What was asked: the port, and the Host."""
    async with httpx.AsyncClient(transport=balancer) as client:
        return (await client.post("http://127.0.0.1:2001/mcp", content=b"{}", headers=headers)).text


async def test_each_request_goes_to_the_next_replica_that_takes_it() -> None:
    dead: set[int] = set()
    tried: list[int] = []

    def served(request: httpx.Request) -> httpx.Response:
        port = request.url.port or 0
        tried.append(port)
        if port in dead:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, text=f"{port} {request.headers['host']}")

    balancer = Balancer([replica(port) for port in PORTS], httpx.MockTransport(served))
    assert [await asked(balancer) for _ in range(4)] == [f"{p} 127.0.0.1:{p}" for p in (*PORTS, PORTS[0])]
    dead.add(2002)
    assert await asked(balancer) == "2003 127.0.0.1:2003"
    assert tried[-2:] == [2002, 2003]
    assert await asked(balancer, host="evil.example") == "2003 evil.example"
    balancer.only = 1
    with pytest.raises(httpx.ConnectError):
        await asked(balancer)
    dead.update(PORTS)
    balancer.only = None
    with pytest.raises(httpx.ConnectError):
        await asked(balancer)


async def test_what_was_sent_is_not_sent_again() -> None:
    tried = []

    def broken(request: httpx.Request) -> httpx.Response:
        tried.append(request.url.port)
        raise httpx.ReadError("it broke")

    with pytest.raises(httpx.ReadError):
        await asked(Balancer([replica(port) for port in PORTS], httpx.MockTransport(broken)))
    assert tried == [2001]


def subject(**more: object) -> Subject:
    start = {"command": ["p", "{config}"], "url": "http://127.0.0.1:{port}/mcp"}
    config = {"template": {"servers": "{servers}", "port": "{port}", **more.pop("keys", {})}, "stdio": {}}  # type: ignore[dict-item]
    return Subject.from_mapping(
        {"id": "p", "title": "p", "start": start, "config": config, "tools": {"names": "{tool}"}, **more}
    )


def test_people_have_the_keys_that_the_config_has(tmp_path: Path) -> None:
    assert CheckValues(subject(), tmp_path).credentials() == {}
    values = CheckValues(subject(keys={"a": "{token}", "b": "{other_token}", "c": "{key}"}), tmp_path)
    first, second = values.places("1"), values.places("2")
    assert first == second
    assert len(set(first.values())) == 3
    for person, key in zip(PEOPLE, ("token", "other_token"), strict=True):
        assert values.credentials(person) == {"Authorization": f"Bearer {first[key]}"}


def test_each_process_has_a_private_port_and_all_one_folder(tmp_path: Path) -> None:
    values = CheckValues(subject(keys={"a": "{private_port}", "b": "{shared}"}), tmp_path)
    first, second = values.places("1"), values.places("2")
    assert first["private_port"] != second["private_port"]
    assert first["shared"] == second["shared"]
    assert Path(first["shared"]).is_dir()


def test_tokens_are_good_but_for_one_thing(tmp_path: Path) -> None:
    declared = {"scope": "use", "claims": {"groups": ["dev"]}}
    told = subject(keys={"i": "{issuer}", "r": "{resource}"}, authorization=declared)
    values = CheckValues(told, tmp_path)
    try:
        places = values.places("2001")
        assert places["resource"] == "http://127.0.0.1:2001/mcp"
        assert values.places("2002") == places  # it is one resource, however many processes
        claims = jwt.decode(values.issuer.token("ben", aud=["x"]), options={"verify_signature": False})
        good = values.issuer.claims("ben")
        own = {key: claims[key] for key in ("jti", "iat", "exp")}  # a second may have passed between them
        assert claims == {**good, "aud": ["x"], **own}
        assert claims["exp"] - claims["iat"] == good["exp"] - good["iat"]
        assert (good["iss"], good["sub"], good["scope"]) == (places["issuer"], "ben", "use")
        assert good["groups"] == ["dev"]
        assert "nbf" not in values.issuer.claims(nbf=None)
    finally:
        values.stop()


def test_without_pyjwt_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(NotPlayableError, match=r"pip install 'mcpzip\[conformance,jwt\]'"):
        Issuer(Authorization(), "https://mcp.example/mcp")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            'Bearer realm="a, b", resource_metadata="https://x/y"',
            {"realm": "a, b", "resource_metadata": "https://x/y"},
        ),
        ("Basic realm=x, Bearer error=invalid_token", {"error": "invalid_token"}),
        ("Bearer", {}),
    ],
)
def test_a_challenge_is_read(said: str, found: dict[str, str]) -> None:
    assert challenge(Response(401, {"www-authenticate": said}, b"")) == {"": "Bearer", **found}
    assert challenge(Response(401, {"www-authenticate": "Basic realm=Bearers"}, b"")) == {}
    assert challenge(Response(401, {}, b"")) == {}


def test_metadata_are_at_two_paths() -> None:
    where = "/.well-known/oauth-protected-resource"
    assert paths_of("https://mcp.example/team/mcp/") == (f"{where}/team/mcp", where)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Nothing ran; try again.", True),
        ("The call was not sent.", True),
        ("It did not reach the server.", True),
        ("The call may have run.", False),
        ("It did not run to its end.", False),
    ],
)
def test_an_error_must_not_claim_that_nothing_ran(text: str, claims: bool) -> None:
    reply = Reply(error=msgspec.json.encode({"code": 1, "message": text}))
    if claims:
        with pytest.raises(Finding, match="reached the server"):
            says_truly(reply, "The call")
    else:
        says_truly(reply, "The call")
