"""The page for a team, of a real `mcpzip serve --http`: what one person may not use, and what another one
does, is on no page of theirs; and who is no person gets no page.
"""

import json
import re
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from helpers.driver import PATIENCE, until
from helpers.team_page import Browser, running
from helpers.ui_client import Answer
from mcpzip_fakes.launch import FakeServer

from mcpzip.identity.api_keys import new_key, read_keys, remove_keys
from mcpzip.ui.pages import ROUTES as ROUTES_OF_UI
from mcpzip.ui.team.pages import ROUTES

StartFake = Callable[..., FakeServer]
WITH_KEYS = {"api_keys": "keys.json", "page": "127.0.0.1:0"}
EVIL = "http://evil.example"
LONG = "the zygote is in drawer seven " * 2_000
SECRETS = ("vault", "unseal", "Unseal", "zygote", "bob")
"""What only bob may see."""
NAMES = ("vault", "vault__unseal", "desk", "desk__file_memo", "1", "2", "nothing")
FORMS = ("/sign-out", *(path.replace("*", "desk__file_memo") for method, path in ROUTES if method == "POST"))


class Team:
    """A running mcpzip with the two."""

    def __init__(self, origin: str, keys: Path) -> None:
        self.origin, self.keys = origin, keys
        self.ann, self.bob = self.browser("ann", "clerks"), self.browser("bob", "keepers")

    def key(self, name: str, *groups: str, until: float | None = None) -> str:
        return new_key(str(self.keys), name, groups, (), 0.0, until)

    def browser(self, name: str, *groups: str) -> Browser:
        browser = Browser(self.origin, self.key(name, *groups))
        until(lambda: browser.post("/sign-in", {"key": browser.token}).status == 303)
        return browser.sign_in()


@pytest.fixture
def team(fake_mcp: StartFake, tmp_path: Path) -> Iterator[Team]:
    desk = fake_mcp(
        name="desk",
        tools=[
            {"name": "file_memo", "description": "File a memo in the archive.", "result": {"text": "filed"}}
        ],
    )
    vault = fake_mcp(
        name="vault",
        tools=[{"name": "unseal", "description": "Unseal the zygote.", "result": {"text": LONG}}],
    )
    servers = {"desk": desk.config, "vault": vault.config}
    with running(tmp_path, WITH_KEYS, servers) as (origin, _):
        team = Team(origin, tmp_path / "keys.json")
        until(lambda: "unseal" in team.bob.get("/servers/vault").text)
        until(lambda: "file_memo" in team.ann.get("/servers/desk").text)
        yield team


def everything(browser: Browser, handle: str) -> Iterator[tuple[str, Answer]]:
    """What every route answers, for every name."""
    token = browser.get("/").form_token
    for method, pattern in sorted({*ROUTES, *ROUTES_OF_UI}):
        for name in NAMES if "*" in pattern else ("",):
            path = pattern.replace("*", name)
            if method == "POST":
                yield path, browser.post(path, {"form_token": token, "json": '{"a": 1}'})
            else:
                for query in (
                    "",
                    "?query=unseal+the+zygote",
                    f"?kept={handle}&from=1",
                    "?find=va&server=vault",
                ):
                    yield path, browser.get(path + query)


def test_nobody_sees_what_they_may_not_use_nor_what_others_do(team: Team) -> None:
    said = team.bob.call("vault__unseal")
    assert "drawer seven" in said.text, said.words
    found = re.search(r"kept=(r\d+-[a-z2-7]+)", said.text)
    assert found, said.words
    handle = found[1]
    assert "drawer seven" in team.bob.get(f"/tools/vault__unseal?kept={handle}&from=1").text
    assert "filed" in team.ann.call("desk__file_memo").words
    # Counts and numbers don't tell that somebody else has made a call.
    assert re.search(r"\b1 call\b", team.ann.get("/calls").words)
    assert team.ann.get("/calls/1").status == 200
    assert "desk" in team.ann.get("/calls/1").words
    assert team.ann.get("/calls/2").status == 404
    assert "unseal" in team.bob.get("/calls/1").words
    for path, answer in everything(team.ann, handle):
        given = answer.text.replace("unseal the zygote", "").replace("unseal+the+zygote", "")
        if path == "/search":  # which says which words of the query were found nowhere
            given = re.sub(r"unseal|zygote", "", given)
        given = (
            given.replace("&#39;vault__unseal&#39;", "").replace("&#39;vault&#39;", "").replace(handle, "")
        )
        assert not [word for word in (*SECRETS, "drawer") if word in given], (path, answer.words)


def test_a_forbidden_tool_is_as_if_it_did_not_exist(team: Team) -> None:
    for path in ("/tools/{}", "/servers/{}"):
        answers = [team.ann.get(path.format(name)) for name in ("vault__unseal", "vault", "vaulx__unseal")]
        words = {re.sub(r"'[^']*'", "", answer.words) for answer in answers}
        assert {answer.status for answer in answers} == {404}
        assert len(words) == 1
    before = len(calls_in_audit(team))
    assert team.ann.call("vault__unseal").status == 404
    assert len(calls_in_audit(team)) == before


def calls_in_audit(team: Team) -> list[dict[str, object]]:
    files = sorted(team.keys.parent.rglob("*audit.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return [line for line in lines if line.get("tool")]


def test_a_call_is_in_the_audit_log_as_of_the_person(team: Team) -> None:
    assert "filed" in team.ann.call("desk__file_memo").words
    line = until(lambda: calls_in_audit(team))[-1]
    assert line["principal"] == {"issuer": "mcpzip:api-keys", "subject": "ann", "name": "ann"}
    assert "mcpzip ui" in json.dumps(line["client"])


def test_nothing_of_it_changes_anything_for_others(team: Team) -> None:
    for method, pattern in ROUTES_OF_UI:
        if (method, pattern) not in ROUTES:
            path = pattern.replace("*", "desk")
            fields = {"form_token": team.bob.get("/").form_token}
            answer = team.bob.get(path) if method == "GET" else team.bob.post(path, fields)
            assert answer.status == 404, pattern
    for word in ("Review", "Config", "Doctor", "Restart", "Add a server"):
        for path in ("/", "/servers", "/servers/desk"):
            assert word not in team.bob.get(path).words


def test_without_a_sign_in_nothing_is_shown(team: Team) -> None:
    for cookie in (None, "mcpzip=x", team.ann.cookie[:-1], f"{team.ann.cookie}x"):
        for path in ("/", "/servers", "/servers/desk", "/search?query=memo", "/calls/1", "/nothing"):
            answer = team.ann.get(path, Cookie=cookie)
            assert answer.status == 401
            assert "memo" not in answer.text
        for path in FORMS:
            assert team.ann.post(path, {}, Cookie=cookie).status == 401


def test_a_wrong_key_is_refused(team: Team) -> None:
    expired = team.key("old", until=1.0)
    for fields in (
        {},
        {"key": ""},
        {"key": team.ann.token[:-1]},
        {"key": expired},
        {"token": team.ann.token},
    ):
        answer = team.ann.post("/sign-in", fields, Cookie=None)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
        assert team.ann.token not in answer.text
    assert team.ann.get(f"/?key={team.ann.token}", Cookie=None).status == 401
    assert team.ann.get("/", Cookie=None, Authorization=f"Bearer {team.ann.token}").status == 401


def test_a_sign_in_makes_a_new_session_and_ends_the_one_before(team: Team) -> None:
    planted = team.bob.cookie
    answer = team.ann.post("/sign-in", {"key": team.ann.token}, Cookie=planted)
    given = answer.headers["set-cookie"].partition(";")[0]
    assert given not in (planted, team.ann.cookie)
    assert "ann" in team.ann.get("/", Cookie=given).words
    assert team.bob.get("/", Cookie=planted).status == 401


def test_forms_of_another_person_are_refused(team: Team) -> None:
    foreign = team.bob.get("/").form_token
    for fields in ({}, {"form_token": ""}, {"form_token": foreign}):
        for path in FORMS:
            assert team.ann.post(path, fields).status == 403
    assert team.ann.get("/").status == 200


def test_other_sites_and_other_names_are_refused(team: Team) -> None:
    token = team.ann.get("/").form_token
    for headers in ({"Origin": EVIL}, {"Origin": "null"}, {"Origin": None}, {"Sec_Fetch_Site": "same-site"}):
        for path in FORMS:
            assert team.ann.post(path, {"form_token": token}, **headers).status == 403
        assert team.ann.post("/sign-in", {"key": team.ann.token}, **headers).status == 403
    for host in ("evil.example", f"localhost:{team.ann.host.partition(':')[2]}"):
        assert team.ann.get("/", Host=host).status == 421
        assert team.ann.post("/sign-in", {"key": team.ann.token}, Host=host).status == 421
    for answer in (team.ann.get("/"), team.ann.get("/", Cookie=None)):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


def test_who_signs_out_or_has_no_key_any_more_is_out(team: Team) -> None:
    second = Browser(team.origin, team.ann.token).sign_in()
    assert second.submit("/sign-out").status == 200
    assert second.get("/").status == 401
    assert team.ann.get("/").status == 200
    [removed] = remove_keys(str(team.keys), "ann")
    assert removed.name == "ann"
    until(lambda: team.ann.get("/").status == 401)
    assert team.bob.get("/").status == 200
    assert [key.name for key in read_keys(str(team.keys))] == ["bob"]


def test_an_open_page_is_told_of_the_persons_own_calls(team: Team) -> None:
    stream = HTTPConnection("127.0.0.1", int(team.ann.host.rpartition(":")[2]), timeout=PATIENCE)
    try:
        headers = {"Host": team.ann.host, "Cookie": team.ann.cookie}
        stream.request("GET", f"{team.ann.root}/events", headers=headers)
        answer = stream.getresponse()
        assert answer.headers["content-type"] == "text/event-stream"
        read_news(answer)
        assert "filed" in team.ann.call("desk__file_memo").words
        read_news(answer)
        remove_keys(str(team.keys), "ann")
        while answer.readline():  # it ends
            pass
    finally:
        stream.close()
    assert 'data-live="' in team.bob.get("/servers/vault").text
    assert team.ann.get("/events", Cookie=None).status == 401


def read_news(stream: HTTPResponse) -> None:
    while b"changed" not in (line := stream.readline()):
        assert line


def test_behind_a_reverse_proxy(fake_mcp: StartFake, tmp_path: Path) -> None:
    desk = fake_mcp(name="desk", tools=[{"name": "file_memo", "result": {"text": "filed"}}])
    key = new_key(str(tmp_path / "keys.json"), "ann", ("clerks",), (), 0.0, None)
    page = {"listen": "127.0.0.1:0", "public_url": "https://tools.example.org"}
    with running(tmp_path, {**WITH_KEYS, "page": page}, {"desk": desk.config}) as (origin, address):
        assert origin == page["public_url"]
        browser = Browser(address, key)
        through = {"Host": "tools.example.org", "Origin": origin}
        assert browser.get("/").status == 421
        assert browser.post("/sign-in", {"key": key}, Host=through["Host"]).status == 403
        answer = browser.post("/sign-in", {"key": key}, **through)
        assert answer.status == 303
        cookie = answer.headers["set-cookie"]
        assert re.fullmatch(r"__Host-mcpzip=\S+; Path=/; Secure; HttpOnly; SameSite=Strict", cookie)
        assert "strict-transport-security" in answer.headers
        named = {"Host": through["Host"], "Cookie": cookie.partition(";")[0]}
        assert browser.get("/", **named).headers["location"] == "/page/"
        assert "ann" in browser.get("/page/", **named).words
        assert browser.get("/mcp", **named).status == 401  # which is at another address
