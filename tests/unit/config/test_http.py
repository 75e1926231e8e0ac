"""The ``http`` and the ``access`` of a config: what is read, and each mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpzip.config import Config
from mcpzip.config.reading import parse
from mcpzip.config.schema import AccessRule, HttpConfig, IssuerConfig, RateLimit
from mcpzip.model.errors import ConfigError

URL = "https://mcp.example.org/mcp"
ISSUER = "https://login.example.org"
SERVERS = {"time": {"command": "time"}}


def read(**keys: object) -> Config:
    env = {"SECRET": "s3cret-of-the-client"}
    return parse(json.dumps({"mcpServers": SERVERS, **keys}).encode(), "/c/config.json", env)


def error(**keys: object) -> str:
    with pytest.raises(ConfigError) as found:
        read(**keys)
    return str(found.value)


def test_nobody_is_known_unless_the_config_says_so() -> None:
    assert read().http == HttpConfig()
    assert not read().http.has_people
    assert read().access is None


def test_issuers_and_keys() -> None:
    found = read(http={"public_url": f"{URL}/", "issuers": [ISSUER], "api_keys": "keys.json"}).http
    assert found == HttpConfig(URL, (IssuerConfig(ISSUER),), str(Path("/c/keys.json")))
    assert found.has_people
    assert read(http={"api_keys": "keys.json"}).http.has_people


def test_all_of_an_issuer() -> None:
    issuer = {
        "issuer": ISSUER,
        "scopes": ["mcp:tools"],
        "groups_claim": "realm_access.roles",
        "name_claim": "email",
        "token_type": "at+jwt",
        "algorithms": ["ES256"],
        "jwks_uri": f"{ISSUER}/keys",
        "introspection": {"endpoint": f"{ISSUER}/i", "client_id": "me", "client_secret": "${SECRET}"},
    }
    (found,) = read(http={"public_url": URL, "issuers": [issuer]}).http.issuers
    assert (found.scopes, found.groups_claim, found.name_claim) == (
        ("mcp:tools",),
        "realm_access.roles",
        "email",
    )
    assert (found.token_type, found.algorithms, found.jwks_uri) == ("at+jwt", ("ES256",), f"{ISSUER}/keys")
    assert found.introspection is not None
    assert found.introspection.client_secret.reveal() == "s3cret-of-the-client"
    assert "s3cret" not in repr(found)


def of_issuer(**keys: object) -> dict[str, Any]:
    return {"public_url": URL, "issuers": [{"issuer": ISSUER, **keys}]}


@pytest.mark.parametrize(
    ("http", "found"),
    [
        ("https://x", "http: found no object"),
        ({"isuers": []}, "http.isuers: there is no such key"),
        ({"issuers": [ISSUER]}, "there is no public_url"),
        ({"public_url": "mcp.example.org", "issuers": [ISSUER]}, "http.public_url: found no URL"),
        ({"public_url": "http://mcp.example.org/mcp"}, "others could listen"),
        ({"public_url": f"{URL}?a=1"}, "a query"),
        ({"public_url": "https://u@mcp.example.org/mcp"}, "a user"),
        ({"public_url": URL, "issuers": []}, "http.issuers: found no list"),
        ({"public_url": URL, "issuers": ["http://login.example.org"]}, "[0]: others could listen"),
        ({"public_url": URL, "issuers": [ISSUER, ISSUER]}, "twice"),
        ({"public_url": URL, "issuers": [{}]}, "http.issuers[0]: there is no issuer"),
        ({"public_url": URL, "issuers": [7]}, "http.issuers[0]: found no object"),
        ({"public_url": URL, "issuers": ["https://a.example"] * 100}, "found 100 issuers"),
        (of_issuer(audience="x"), "http.issuers[0].audience: there is no such key"),
        (of_issuer(scopes=["a b"]), "http.issuers[0].scopes: found what is no scope"),
        (of_issuer(scopes=[]), "http.issuers[0].scopes: found an empty list"),
        (of_issuer(algorithms=["HS256"]), "http.issuers[0].algorithms: found an algorithm"),
        (of_issuer(algorithms=["none"]), "http.issuers[0].algorithms: found an algorithm"),
        (of_issuer(algorithms=[]), "http.issuers[0].algorithms: found an algorithm"),
        (of_issuer(jwks_uri="http://login.example.org/keys"), "jwks_uri: others could listen"),
        (of_issuer(introspection={"endpoint": f"{ISSUER}/i"}), "it lacks one of"),
        (
            of_issuer(introspection={"endpoint": f"{ISSUER}/i", "client_id": "a", "client_secret": "${NO}"}),
            "the environment variable NO is not set",
        ),
        ({"api_keys": ""}, "http.api_keys: found an empty text"),
    ],
)  # fmt: skip
def test_a_mistake_says_where_it_is(http: object, found: str) -> None:
    assert found in error(http=http)


def test_only_one_issuer_is_asked_about_opaque_tokens() -> None:
    asked = {"endpoint": f"{ISSUER}/i", "client_id": "me", "client_secret": "${SECRET}"}
    issuers = [{"issuer": f"https://{name}.example.org", "introspection": asked} for name in "ab"]
    assert "more than one issuer has introspection" in error(http={"public_url": URL, "issuers": issuers})


def test_rules() -> None:
    found = read(
        access=[
            {"allow": "time"},
            {
                "groups": ["a", "b"],
                "scopes": ["s"],
                "deny": ["time__*", "x"],
                "risk": ["destroys", "reaches_out"],
            },
        ]
    ).access
    assert found == (
        AccessRule(True, ("time",)),
        AccessRule(False, ("time__*", "x"), frozenset("ab"), ("s",), frozenset({"destroys", "reaches_out"})),
    )
    assert read(access=[]).access == ()


@pytest.mark.parametrize(
    ("access", "found"),
    [
        ({}, "access: found no list"),
        (["time"], "access[0]: found no object"),
        ([{"groups": ["a"]}], "access[0]: a rule has either an allow or a deny"),
        ([{"allow": "a", "deny": "b"}], "access[0]: a rule has either an allow or a deny"),
        ([{"allow": "a", "group": ["a"]}], "access[0].group: there is no such key"),
        ([{"allow": []}], "access[0].allow: found an empty list"),
        ([{"allow": [""]}], "access[0].allow: found an empty list, or an empty glob"),
        ([{"allow": "a", "groups": []}], "access[0].groups: found an empty list"),
        ([{"allow": "a", "groups": "a"}], "access[0].groups: found a string"),
        ([{"allow": "a", "scopes": []}], "access[0].scopes: found an empty list"),
        ([{"allow": "a", "risk": "reaches_out"}], "access[0].risk: found another class"),
        ([{"allow": "a", "risk": "read"}], "access[0].risk: found another class"),
        ([{"allow": "a"}] * 5_000, "found 5,000 rules"),
    ],
)
def test_a_mistake_in_a_rule_says_where_it_is(access: object, found: str) -> None:
    assert found in error(access=access)


def test_nothing_is_filtered_in_transparent() -> None:
    assert 'with "mode": "transparent"' in error(expose="transparent", access=[{"allow": "time"}])


def test_rate_limits() -> None:
    found = read(
        rate_limits=[
            {"calls": 60},
            {"of": ["crm", "time__*"], "calls": 5, "seconds": 0.5, "concurrent": 2, "groups": ["a"]},
            {"concurrent": 4},
            {"calls": 1, "if_store_fails": "deny"},
            {"requests": 600, "groups": ["a"]},
        ]
    ).rate_limits
    assert found == (
        RateLimit(calls=60),
        RateLimit(("crm", "time__*"), 5, 0.5, 2, frozenset("a")),
        RateLimit(concurrent=4),
        RateLimit(calls=1, if_store_fails="deny"),
        RateLimit(requests=600, groups=frozenset("a")),
    )
    assert read().rate_limits == ()


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        ({}, "rate_limits: found no list"),
        ([{}], "rate_limits[0]: it says neither"),
        ([{"seconds": 5}], "rate_limits[0]: it says neither"),
        ([{"seconds": 5, "concurrent": 1}], "rate_limits[0]: it says neither"),
        ([{"calls": 0}], "rate_limits[0].calls: found 0"),
        ([{"calls": 1.5}], "rate_limits[0].calls: found 1.5"),
        ([{"calls": 1, "seconds": 0}], "rate_limits[0].seconds: found 0"),
        ([{"calls": 1, "minutes": 1}], "rate_limits[0].minutes: there is no such key"),
        ([{"calls": 1, "of": []}], "rate_limits[0].of: found an empty list"),
        ([{"calls": 1, "groups": []}], "rate_limits[0].groups: found an empty list"),
        ([{"concurrent": "many"}], "rate_limits[0].concurrent: found a string"),
        ([{"calls": 1, "if_store_fails": "open"}], "rate_limits[0].if_store_fails: found 'open'"),
        ([{"requests": 0}], "rate_limits[0].requests: found 0"),
        ([{"requests": 1, "calls": 1}], "rate_limits[0]: a limit of requests has only seconds and groups"),
        ([{"requests": 1, "of": "crm"}], "rate_limits[0]: a limit of requests has only seconds and groups"),
    ],
)
def test_a_mistake_in_a_limit_says_where_it_is(rates: object, found: str) -> None:
    assert found in error(rate_limits=rates)
