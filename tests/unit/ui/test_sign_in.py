"""The token of a run, and the browsers that have shown it."""

import pytest

from mcpzip.ui.limits import BROWSER_SESSIONS
from mcpzip.ui.sign_in import SignIn, cookie, cookie_name


def test_the_token_gives_a_session() -> None:
    sign_in = SignIn()
    session = sign_in.exchange(sign_in.token)
    assert session is not None
    sent = f"other=1; {cookie_name(80)}={session.secret}; last=2"
    assert sign_in.session_of(sent, cookie_name(80)) == session
    assert session.allows(session.form_token)


@pytest.mark.parametrize("token", ["", "x", "\ud800", "é"])
def test_no_other_text_does(token: str) -> None:
    assert SignIn().exchange(token) is None
    sign_in = SignIn()
    assert sign_in.exchange(sign_in.token[:-1]) is None
    assert sign_in.exchange(sign_in.token + "x") is None


def test_runs_and_sessions_have_nothing_in_common() -> None:
    one, other = SignIn(), SignIn()
    first, second = one.exchange(one.token), one.exchange(one.token)
    assert first
    assert second
    secrets = {one.token, other.token, first.secret, second.secret, first.form_token, second.form_token}
    assert len(secrets) == 6
    assert min(map(len, secrets)) >= 43  # 256 bits
    assert other.session_of(f"{cookie_name(80)}={first.secret}", cookie_name(80)) is None
    assert not first.allows(second.form_token)
    assert not first.allows("")
    assert not first.allows("\ud800")


@pytest.mark.parametrize(
    "sent", [None, "", ";;", "mcpzip-ui-80", "mcpzip-ui-80=", "mcpzip-ui-80=x", "=", "é=\ud800"]
)
def test_no_other_cookie_is_a_session(sent: str | None) -> None:
    sign_in = SignIn()
    assert sign_in.exchange(sign_in.token)
    assert sign_in.session_of(sent, cookie_name(80)) is None


def test_a_cookie_of_another_port_is_none_of_ours() -> None:
    sign_in = SignIn()
    session = sign_in.exchange(sign_in.token)
    assert session
    assert sign_in.session_of(f"{cookie_name(81)}={session.secret}", cookie_name(80)) is None


def test_the_oldest_browser_makes_room() -> None:
    sign_in = SignIn()
    sessions = [sign_in.exchange(sign_in.token) for _ in range(BROWSER_SESSIONS + 1)]
    known = [one is not None and sign_in.session_of(f"a={one.secret}", "a") is not None for one in sessions]
    assert known == [False] + [True] * BROWSER_SESSIONS


def test_a_browser_is_signed_out() -> None:
    sign_in = SignIn()
    session = sign_in.exchange(sign_in.token)
    assert session
    sign_in.end(session)
    assert sign_in.session_of(f"a={session.secret}", "a") is None


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    assert cookie(80, "x", "/r") == b"mcpzip-ui-80=x; Path=/r/; HttpOnly; SameSite=Strict"
    assert cookie(80, "", "/r").endswith(b"; Max-Age=0")
