"""Tokens that are JWTs: what is let in, and each way of being nearly valid."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.oauth.signing import ALGORITHMS, Signer

from mcpzip.config.schema import IssuerConfig
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.identity.jwks import KeySet, keys_in
from mcpzip.identity.jwt_verifier import JwtVerifier, parsed
from mcpzip.model.principal import Principal

ISSUER = "https://login.example.org/team"
URL = "https://mcp.example.org/mcp"
SIGNERS = {algorithm: Signer(algorithm) for algorithm in ALGORITHMS}


def claims(**changed: object) -> dict[str, object]:
    now = int(time.time())
    found = {
        "iss": ISSUER,
        "sub": "u-1",
        "aud": URL,
        "iat": now,
        "exp": now + 300,
        "preferred_username": "ann",
        "groups": ["developers"],
        "scope": "mcp read",
        **changed,
    }
    return {key: value for key, value in found.items() if value is not None}


def verifier(signer: Signer, **settings: Any) -> JwtVerifier:
    issuer = IssuerConfig(ISSUER, **settings)
    keys = KeySet(issuer, lambda warning: None)
    keys._keys = keys_in(json.dumps(signer.key_set).encode(), issuer)
    keys._fetched_at = keys._tried_at = keys._clock()
    return JwtVerifier(issuer, URL, keys)


def check(token: str, signer: Signer = SIGNERS["RS256"], **settings: Any) -> Principal | None:
    said = parsed(token)
    if said is None:
        raise TokenError("it is no JWT")
    return verifier(signer, **settings).verify(token, said)


def refusal(token: str, signer: Signer = SIGNERS["RS256"], **settings: Any) -> str:
    with pytest.raises(TokenError) as error:
        check(token, signer, **settings)
    return str(error.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_valid_token_says_who_it_is(algorithm: str) -> None:
    signer = SIGNERS[algorithm]
    found = check(signer.sign(claims(), {}), signer)
    assert found == Principal(ISSUER, "u-1", "ann", frozenset({"developers"}), frozenset({"mcp", "read"}))


@pytest.mark.parametrize(
    "aud",
    [URL, f"{URL}/", ["https://other.example.org", URL], [f"{URL}/"]],
    ids=["url", "slash", "list", "list of slash"],
)
def test_the_audience_may_have_a_slash_at_its_end_and_be_one_of_several(aud: object) -> None:
    assert check(SIGNERS["RS256"].sign(claims(aud=aud), {})) is not None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "https://mcp.example.org"}, "another resource"),
        ({"aud": "https://mcp.example.org/mcp/other"}, "another resource"),
        ({"aud": "https://MCP.example.org/mcp"}, "another resource"),
        ({"aud": ["https://other.example.org/mcp"]}, "another resource"),
        ({"aud": []}, "another resource"),
        ({"aud": {URL: True}}, ""),
        ({"aud": None}, "lacks the claim aud"),
        ({"exp": None}, "lacks the claim exp"),
        ({"sub": None}, "lacks the claim sub"),
        ({"sub": ""}, "nobody"),
        ({"sub": "x" * 5_000}, "nobody"),
        ({"exp": int(time.time()) - 61}, "expired"),
        ({"nbf": int(time.time()) + 10**6}, "not valid yet"),
        ({"iss": "https://login.example.org/team/"}, "not valid"),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"groups": ["g"] * 10_000}, "more than"),
        ({"exp": "never"}, ""),
        ({"exp": []}, ""),
    ],
)  # fmt: skip
def test_a_token_that_is_not_for_us_is_refused(changed: dict[str, object], why: str) -> None:
    text = json.dumps(claims(**changed))  # with what PyJWT itself would not write
    signer = SIGNERS["RS256"]
    assert why in refusal(signed(signer, text))


def signed(signer: Signer, payload: str, header: dict[str, object] | None = None) -> str:
    """A token with this payload, whatever it is."""
    told = {"alg": "RS256", "kid": "key-1", "typ": "at+jwt", **(header or {})}
    algorithm = jwt.get_algorithm_by_name("RS256")
    start = f"{encoded(json.dumps(told).encode())}.{encoded(payload.encode())}"
    return f"{start}.{encoded(algorithm.sign(start.encode(), signer._key))}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_clocks_may_differ_a_little() -> None:
    now = int(time.time())
    assert check(SIGNERS["RS256"].sign(claims(exp=now - 30), {})) is not None
    assert check(SIGNERS["RS256"].sign(claims(nbf=now + 30, iat=now + 30), {})) is not None


def test_no_algorithm_is_no_signature() -> None:
    unsigned = jwt.encode(claims(), None, algorithm="none", headers={"kid": "key-1", "typ": "at+jwt"})
    assert "no such key" in refusal(unsigned)


def test_a_public_key_is_no_shared_secret() -> None:
    signer = SIGNERS["RS256"]
    public = signer._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = encoded(json.dumps({"alg": "HS256", "kid": "key-1", "typ": "at+jwt"}).encode())
    start = f"{header}.{encoded(json.dumps(claims()).encode())}"
    import hashlib
    import hmac

    forged = f"{start}.{encoded(hmac.digest(public, start.encode(), hashlib.sha256))}"
    assert "no such key" in refusal(forged)


def test_a_shared_secret_in_a_key_set_is_not_used() -> None:
    issuer = IssuerConfig(ISSUER)
    secret = {"kty": "oct", "k": encoded(b"0" * 32), "kid": "key-1", "alg": "HS256"}
    with pytest.raises(IssuerUnavailableError):
        keys_in(json.dumps({"keys": [secret]}).encode(), issuer)


def test_a_short_key_is_not_used() -> None:
    from jwt.algorithms import RSAAlgorithm

    short = rsa.generate_private_key(public_exponent=65_537, key_size=1_024).public_key()
    jwk = json.loads(RSAAlgorithm.to_jwk(short))
    with pytest.raises(IssuerUnavailableError):
        keys_in(json.dumps({"keys": [{**jwk, "use": "sig"}]}).encode(), IssuerConfig(ISSUER))


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"crit": ["exp"]}, "extensions"),
        ({"crit": []}, "extensions"),
        ({"kid": "key-2"}, "no such key"),
        ({"alg": "PS256"}, "no such key"),
        ({"alg": "ES256"}, "no such key"),
        ({"typ": "logout+jwt"}, "another type"),
        ({"typ": "dpop+jwt"}, "another type"),
    ],
)
def test_a_header_that_is_not_of_an_access_token(header: dict[str, object], why: str) -> None:
    assert why in refusal(signed(SIGNERS["RS256"], json.dumps(claims()), header))


def test_the_config_says_which_type_and_algorithms() -> None:
    signer = SIGNERS["RS256"]
    assert check(signer.sign(claims(), {"typ": "application/AT+JWT"}), token_type="at+jwt") is not None
    assert "another type" in refusal(signer.sign(claims(), {"typ": "JWT"}), token_type="at+jwt")
    with pytest.raises(IssuerUnavailableError):
        check(signer.sign(claims(), {}), algorithms=("ES256",))


def test_the_key_of_another_issuer_does_not_do() -> None:
    other = Signer("RS256")
    assert "not valid" in refusal(other.sign(claims(), {}))


def test_a_changed_payload_does_not_do() -> None:
    head, _, signature = SIGNERS["RS256"].sign(claims(), {}).split(".")
    changed = encoded(json.dumps(claims(groups=["admins"])).encode())
    assert "not valid" in refusal(f"{head}.{changed}.{signature}")


@pytest.mark.parametrize(
    ("token", "claim", "expected"),
    [
        ({"realm_access": {"roles": ["a", 7, "b"]}}, "realm_access.roles", {"a", "b"}),
        ({"https://example.org/groups": ["a"]}, "https://example.org/groups", {"a"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({"groups": {"a": 1}}, "groups", set()),
        ({}, "realm_access.roles", set()),
    ],
)
def test_where_groups_are(token: dict[str, object], claim: str, expected: set[str]) -> None:
    found = check(SIGNERS["RS256"].sign(claims(groups=None) | token, {}), groups_claim=claim)
    assert found is not None
    assert found.groups == expected


@pytest.mark.parametrize(
    "scope", [{"scope": "a b"}, {"scope": None, "scp": ["a", "b"]}, {"scope": None, "scp": "a b"}]
)
def test_where_scopes_are(scope: dict[str, object]) -> None:
    found = check(SIGNERS["RS256"].sign(claims(**scope), {}))
    assert found is not None
    assert found.scopes == {"a", "b"}


def test_a_name_is_no_control_sequence() -> None:
    found = check(SIGNERS["RS256"].sign(claims(preferred_username="\x1b[2Jann\n\u202eb"), {}))
    assert found is not None
    assert found.name.isprintable()


@given(
    st.text()
    | st.from_regex(r"[A-Za-z0-9_-]{0,20}\.[A-Za-z0-9_-]{0,20}\.[A-Za-z0-9_-]{0,20}", fullmatch=True)
)
def test_anything_is_read_without_a_surprise(token: str) -> None:
    said = parsed(token)
    if said is not None:
        with pytest.raises(TokenError):
            verifier(SIGNERS["RS256"]).verify(token, said)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    st.sampled_from(
        ["sub", "aud", "exp", "nbf", "iat", "iss", "groups", "scope", "scp", "cnf", "preferred_username"]
    ),
)
def test_any_claim_may_be_anything(value: object, claim: str) -> None:
    try:
        found = check(signed(SIGNERS["RS256"], json.dumps(claims() | {claim: value})))
    except TokenError:
        return
    assert found is not None
    assert found.issuer == ISSUER
