"""What a replica seals: it comes back as it was, at any replica with the key, for the same person and
request, and is nothing to anybody else.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.model.principal import Principal
from mcpzip.server.replicas import replica as module
from mcpzip.server.replicas.replica import Forwarded, Owner, Replica, is_body, request_digest
from mcpzip.system.sealing import KeyRing

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
HERE, THERE = "10.0.0.1:8940", "10.0.0.2:8940"
ADDRESSES = st.one_of(
    st.builds(
        lambda host, port: f"{host}:{port}",
        st.one_of(st.ip_addresses(v=4).map(str), st.just("replica-1.mcpzip"), st.just("[fd00::7]")),
        st.integers(1, 65_535),
    )
)
PEOPLE = st.one_of(
    st.none(), st.builds(Principal, st.sampled_from(["https://a", "https://b"]), st.text(max_size=8))
)
FIELDS = st.dictionaries(
    st.sampled_from(["name", "uri", "arguments", "x"]),
    st.one_of(st.integers(), st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.integers())),
)


def made(address: str = HERE, key: bytes = KEY) -> Replica:
    return Replica(KeyRing([key]), address)


def encoded(fields: dict[str, object], indent: int | None = None) -> dict[str, bytes]:
    return {key: json.dumps(value, indent=indent).encode() for key, value in fields.items()}


def of(principal: Principal | None) -> object:
    return None if principal is None else principal.id


# --- sessions


@given(ADDRESSES, PEOPLE, PEOPLE)
def test_a_session_is_opened_by_every_replica_and_is_of_one_person(
    address: str, person: Principal | None, other: Principal | None
) -> None:
    home = made(address)
    token = home.seal_session("2025-06-18", b'{"name":"c"}', b'{"roots":{}}', person)
    session = made(THERE).open_session(token)
    assert session is not None
    assert (session.home, session.version) == (home.owner, "2025-06-18")
    assert (session.info, session.capabilities) == (b'{"name":"c"}', b'{"roots":{}}')
    assert session.is_of(person)
    assert session.is_of(other) == (of(person) == of(other))
    assert made(key=OTHER_KEY).open_session(token) is None
    assert token.isascii()
    assert all("!" <= character <= "~" for character in token)


def test_a_session_fits_in_a_header_whatever_its_client_says() -> None:
    long = b'{"x":"' + b"x" * limits.MESSAGE + b'"}'
    token = made().seal_session("2025-06-18", long, long, Principal("https://a", "b" * 256))
    assert len(token) < limits.SEALED_SESSION
    session = made().open_session(token)
    assert session is not None
    assert (session.info, session.capabilities) == (b"", b"{}")
    full = made().seal_session(
        "2025-06-18", b"i" * limits.SEALED_INFO, b"c" * limits.SEALED_CAPABILITIES, None
    )
    assert made().open_session(full) is not None


def test_a_session_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    token = made().seal_session("2025-06-18", b"", b"{}", None)
    later = time.time() + module.SESSION_LIFETIME
    monkeypatch.setattr(time, "time", lambda: later)
    assert made().open_session(token) is None


@given(st.text(max_size=200))
def test_any_other_text_is_no_session(text: str) -> None:
    assert made().open_session(text) is None


# --- states and handles


@given(PEOPLE, PEOPLE, FIELDS, FIELDS, st.text(max_size=20))
def test_a_state_is_of_one_person_and_one_request(
    person: Principal | None,
    other: Principal | None,
    fields: dict[str, object],
    others: dict[str, object],
    state: str,
) -> None:
    home, text = made(), json.dumps(state).encode()
    asked = request_digest("tools/call", encoded(fields))
    token = home.seal_state(text, asked, person)
    again = request_digest("tools/call", encoded({**fields, "_meta": 1, "requestState": token}, indent=2))
    assert made(THERE).open_state(token, again, person) == (home.owner, text)
    if of(person) != of(other):
        assert home.open_state(token, asked, other) is None
    if json.dumps(fields, sort_keys=True) != json.dumps(others, sort_keys=True):
        assert home.open_state(token, request_digest("tools/call", encoded(others)), person) is None
    assert home.open_state(token, request_digest("prompts/get", encoded(fields)), person) is None
    assert made(key=OTHER_KEY).open_state(token, asked, person) is None


def test_of_long_params_the_names_are_bound() -> None:
    name, long = b'"a"', b'"' + b"x" * limits.STATE_PARAMS + b'"'
    one = request_digest("tools/call", {"name": name, "arguments": long})
    assert one == request_digest("tools/call", {"name": name, "arguments": b" " + long})
    assert one != request_digest("tools/call", {"name": b'"b"', "arguments": long})


@given(ADDRESSES, PEOPLE, PEOPLE)
def test_a_handle_leads_its_person_to_its_replica(
    address: str, person: Principal | None, other: Principal | None
) -> None:
    assume(address != THERE)
    suffix = made(address).handle_suffix(person)
    assert made(THERE).handle_owner(suffix, person) == Owner(address, b"")
    assert (made(THERE).handle_owner(suffix, other) is not None) == (of(person) == of(other))
    assert made(THERE, OTHER_KEY).handle_owner(suffix, person) is None
    assert made(address).handle_suffix(person) != suffix
    for text in (f'{{"name":"r3-{suffix}"}}', f"return r3_{suffix}[0]", f'{{"id":"q1-{suffix}"}}'):
        assert made(THERE).owner_in(text.encode(), person) == Owner(address, b"")
        assert made(address).owner_in(text.encode(), person) is None
    for text in (f'"r3-{suffix}x"', f'"xr3-{suffix}"', f'"r3-{suffix[::-1]}"', suffix, "r3-"):
        assert made(THERE).owner_in(text.encode(), person) is None


def test_so_much_is_searched_for_handles() -> None:
    suffix = made().handle_suffix(None)
    padding = b" " * limits.HANDLES_SEARCHED
    assert made(THERE).owner_in(b"r1-" + suffix.encode() + padding, None) is not None
    assert made(THERE).owner_in(padding + b"r1-" + suffix.encode(), None) is None
    many = b" ".join([b"r1-" + b"a" * 44] * limits.HANDLES_OPENED)
    assert made(THERE).owner_in(many + b" r1-" + suffix.encode(), None) is None


def test_without_a_private_address_handles_lead_nowhere() -> None:
    assert made("").handle_suffix(None) == ""
    assert made("").is_here(Owner("", b"1"))


def test_what_was_at_this_address_before_is_nowhere_else() -> None:
    assert made(HERE).is_here(made(HERE).owner)
    assert not made(HERE).is_here(made(THERE).owner)


# --- forwarded requests

CHANGES: list[tuple[str, Callable[[Replica, str], Forwarded | None]]] = [
    ("another method", lambda there, token: there.open_forward(token, "GET")),
    ("another replica", lambda there, token: made("10.0.0.3:1").open_forward(token, "POST")),
    ("another key", lambda there, token: made(THERE, OTHER_KEY).open_forward(token, "POST")),
    ("a changed token", lambda there, token: there.open_forward(token.swapcase(), "POST")),
    ("no token", lambda there, token: there.open_forward("", "POST")),
]


@given(PEOPLE, st.binary(max_size=50), st.binary(max_size=50))
def test_a_forwarded_request_says_who_makes_it_once(
    person: Principal | None, body: bytes, other: bytes
) -> None:
    there = made(THERE)
    token = made().seal_forward(THERE, "POST", body, person, "192.0.2.1")
    for name, changed in CHANGES:
        assert changed(there, token) is None, name
    said = there.open_forward(token, "POST")
    assert said is not None
    assert (said.principal, said.client) == (person, "192.0.2.1")
    assert is_body(said, body)
    assert is_body(said, other) == (body == other)
    assert there.open_forward(token, "POST") is None


@pytest.mark.parametrize(
    ("later", "taken"), [(0.0, True), (0.9, True), (1.1, False), (-0.9, True), (-1.1, False)], ids=str
)
def test_a_forwarded_request_is_good_for_a_while_and_as_long_ahead(
    later: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    token = made().seal_forward(THERE, "POST", b"", None, "")
    now += later * module.FORWARD_LIFETIME  # by the clock of the other replica
    assert (made(THERE).open_forward(token, "POST") is not None) == taken


def test_what_was_taken_is_remembered_while_it_is_valid_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "FORWARDS_REMEMBERED", 2)
    now = time.time()
    there, here = made(THERE), made()
    monkeypatch.setattr(time, "time", lambda: now)

    def taken() -> bool:
        return there.open_forward(here.seal_forward(THERE, "POST", b"", None, ""), "POST") is not None

    assert [taken() for _ in range(3)] == [True, True, False]
    now += 2 * module.FORWARD_LIFETIME + 1
    assert taken()


# --- one process


def test_without_replicas_nothing_of_them_is_imported() -> None:
    code = "import sys, mcpzip.server.http.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "mcpzip.server.http.legacy" in loaded
    assert {each for each in loaded if "replicas" in each or "sealed" in each or "sealing" in each} == set()
    assert "cryptography" not in loaded
