"""Who is signed in to the page for a team, and how calls are numbered for each person."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.reading import parse
from mcpzip.identity.api_keys import LOOK_EVERY, ApiKeys, new_key, remove_keys
from mcpzip.identity.errors import TokenError
from mcpzip.model.errors import ConfigError
from mcpzip.ui.team.limits import IDLE, LONGEST, SESSIONS_OF_PERSON
from mcpzip.ui.team.person import CallNumbers
from mcpzip.ui.team.serve import TeamPage
from mcpzip.ui.team.sessions import Sessions

TWO_ISSUERS = '"public_url": "https://m.example/mcp", "issuers": ["https://a.example", "https://b.example"]'
AT_A = '"listen": "0", "issuer": "https://a.example"'


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Place:
    """Sessions with a clock that tests set."""

    def __init__(self, folder: Path) -> None:
        self.file, self.clock = str(folder / "keys.json"), Clock()
        self.key = new_key(self.file, "ann", ("clerks",), (), 0.0, None)
        self.sessions = Sessions(ApiKeys(self.file, pytest.fail, self.clock), self.clock)

    def is_in(self, secret: str) -> bool:
        return self.sessions.of(f"a=b; c={secret}", "c") is not None


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_session_is_that_of_its_cookie_only(place: Place) -> None:
    session = place.sessions.begin(place.key)
    assert session.principal.subject == "ann"
    assert place.is_in(session.secret)
    assert place.sessions.of(f"other={session.secret}", "c") is None
    for wrong in ("", session.secret[:-1], f"{session.secret}x", session.form_token, place.key):
        assert not place.is_in(wrong)
    assert place.sessions.begin(place.key).secret != session.secret


def test_a_session_ends_when_it_is_idle_and_in_any_case(place: Place) -> None:
    idle = place.sessions.begin(place.key).secret
    place.clock.now += IDLE - 1
    assert place.is_in(idle)
    place.clock.now += IDLE
    assert not place.is_in(idle)
    used = place.sessions.begin(place.key).secret
    end = place.clock.now + LONGEST
    while place.clock.now + IDLE / 2 < end:
        assert place.is_in(used)
        place.clock.now += IDLE / 2
    place.clock.now = end
    assert not place.is_in(used)


def test_what_a_page_does_by_itself_keeps_no_session(place: Place) -> None:
    session = place.sessions.begin(place.key)
    place.clock.now += IDLE - 1
    assert place.sessions.of(f"c={session.secret}", "c", by_person=False) is not None
    place.clock.now += 2
    assert place.sessions.current(session.secret) is None


def test_a_session_ends_with_its_key_and_follows_it(place: Place) -> None:
    session = place.sessions.begin(place.key)
    new_key(place.file, "ann", (), (), 0.0, None)
    remove_keys(place.file, place.key.split("_")[1])
    assert place.is_in(session.secret)  # for a second
    place.clock.now += LOOK_EVERY
    assert not place.is_in(session.secret)  # though another key of the same person is valid
    with pytest.raises(TokenError):
        place.sessions.begin(place.key)


def test_the_oldest_browser_of_a_person_makes_room(place: Place) -> None:
    found = [place.sessions.begin(place.key).secret for _ in range(SESSIONS_OF_PERSON + 1)]
    assert [place.is_in(secret) for secret in found] == [False, *[True] * SESSIONS_OF_PERSON]


@given(st.lists(st.sampled_from(("ann", "bob")), max_size=40), st.integers(1, 10))
def test_the_numbers_of_a_person_tell_of_nobody_else(made: list[str], kept: int) -> None:
    numbers, alone = CallNumbers(), CallNumbers()
    own = [number for number, person in enumerate(made, 1) if person == "ann"]
    for at in range(1, len(own) + 1):
        seen = own[max(0, at - kept) : at]
        rest = [number for number, person in enumerate(made, 1) if person == "bob"]
        numbers.of(("i", "bob"), rest)
        found = numbers.of(("i", "ann"), seen)
        expected = alone.of(("i", "ann"), list(range(1, at + 1))[-kept:])
        assert list(found.values()) == list(expected.values()) == list(range(1, at + 1))[-kept:]


@pytest.mark.parametrize(
    ("http", "why"),
    [
        (
            '{"page": "0", "public_url": "https://a.example", "issuers": ["https://i.example"]}',
            "neither api_keys nor",
        ),
        ('{"page": "0"}', "neither api_keys nor"),
        ('{"page": {}, "api_keys": "k"}', "no listen"),
        ('{"page": {"listen": "0", "public_url": "https://a.example/x"}, "api_keys": "k"}', "has a path"),
        ('{"page": {"listen": "0", "public_url": "http://a.example"}, "api_keys": "k"}', "could listen"),
        ('{"page": {"listen": "0", "client_id": "c"}}', "there are 0 issuers"),
        (f'{{"page": {{"listen": "0", "client_id": "c"}}, {TWO_ISSUERS}}}', "there are 2 issuers"),
        (f'{{"page": {{"listen": "0", "client_id": "c", "issuer": "https://c"}}, {TWO_ISSUERS}}}', "none of"),
        ('{"page": {"listen": "0", "client_secret": "s"}, "api_keys": "k"}', "no client_id"),
        ('{"page": {"listen": "0", "scopes": ["s"]}, "api_keys": "k"}', "no client_id"),
        (f'{{"page": {{{AT_A}, "client_id": ""}}, {TWO_ISSUERS}}}', "page.client_id"),
        ('{"page": {"listen": "0", "url": "x"}, "api_keys": "k"}', "no such key"),
        ('{"page": 7, "api_keys": "k"}', "no object"),
    ],
)
def test_a_page_without_a_sign_in_or_an_address_is_refused(http: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(b'{"mcpServers": {}, "http": %s}' % http.encode(), "/c/config.json", {})


def test_others_reach_it_over_https_only() -> None:
    text = b'{"mcpServers": {}, "http": {"page": "0.0.0.0:0", "api_keys": "k"}}'
    config = parse(text, "/c/config.json", {})
    assert config.http.page is not None
    with pytest.raises(ConfigError, match="browsers need https"):
        TeamPage(config, config.http.page, pytest.fail)


def test_the_usual_port_is_not_part_of_an_origin() -> None:
    page_text = b'{"listen": "0", "public_url": "https://A.example:443/"}'
    text = b'{"mcpServers": {}, "http": {"page": %s, "api_keys": "k"}}' % page_text
    page = parse(text, "/c/config.json", {}).http.page
    assert page is not None
    assert page.public_url == "https://a.example"
