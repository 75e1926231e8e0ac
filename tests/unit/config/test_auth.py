"""How a server is signed in to, as a config says it: ours, and as other clients write it."""

import json
import os

import pytest

from mcpzip.config import Config, Secret, ServerConfig, parse
from mcpzip.config.schema import AuthConfig
from mcpzip.model.errors import ConfigError
from mcpzip.system.command_line import split_command_line

FILE = "/home/me/config.json"
ENV = {"HOME": "/home/me", "USERPROFILE": "/home/me", "SECRET": "s3cret", "TWO": "two words"}
URL = "https://x.example/mcp"


def read(document: object) -> Config:
    return parse(json.dumps(document).encode(), FILE, ENV, strict=True)


def one(**keys: object) -> Config:
    return read({"mcpServers": {"a": {"url": URL, **keys}}})


def server(**keys: object) -> ServerConfig:
    config = one(**keys)
    assert config.warnings == ()
    assert config.servers["a"].problem is None
    return config.servers["a"]


def test_a_remote_server_may_ask_for_a_login():
    assert server().auth == AuthConfig()
    assert server(type="sse").auth == AuthConfig()
    assert server(auth=None).auth == AuthConfig()
    assert server(auth=True).auth == AuthConfig()
    assert server(auth={}).auth == AuthConfig()
    assert server(headers={"X-Tenant": "t"}).auth == AuthConfig()


def test_others_are_not_signed_in_to():
    assert read({"mcpServers": {"a": {"command": "x"}}}).servers["a"].auth is None
    assert server(auth=False).auth is None
    assert server(oauth={"enabled": False, "clientId": "c"}).auth is None
    assert server(headers={"authorization": "Bearer t"}).auth is None
    assert server(headers={"AUTHORIZATION": "Bearer t"}, auth=False).auth is None


def test_everything_about_a_login_can_be_said():
    found = server(
        auth={
            "client_id": "c",
            "client_secret": "${SECRET}",
            "scope": ["read", "write  all"],
            "grant": "authorization_code",
            "callback_port": 7777,
            "mcp_remote": False,
        }
    )
    expected = AuthConfig("c", Secret("s3cret"), scope="read write all", callback_port=7777, mcp_remote=False)
    assert found.auth == expected
    assert "s3cret" not in repr(found)
    assert server(auth={"scope": " read write "}).auth == AuthConfig(scope="read write")
    assert server(auth={"scope": ""}).auth == AuthConfig()
    assert server(auth={"issuer": "https://as.example"}).auth == AuthConfig(issuer="https://as.example")
    document = "https://me.example/client.json"
    assert server(auth={"client_metadata_url": document}).auth == AuthConfig(client_metadata_url=document)


def test_a_machine_signs_in_with_a_secret_or_a_key():
    secret = {"grant": "client_credentials", "client_id": "c", "client_secret": "s3cret"}
    assert server(auth=secret).auth == AuthConfig("c", Secret("s3cret"), grant="client_credentials")
    key = {"grant": "client_credentials", "client_id": "c", "private_key": "~/k.pem", "algorithm": "RS256"}
    assert server(auth=key).auth == AuthConfig(
        "c", grant="client_credentials", private_key="/home/me/k.pem", algorithm="RS256"
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"auth": {"client_id": "c", "client_secret": "s3cret", "scope": "r w", "callback_port": 80}},
        {"oauth": {"clientId": "c", "clientSecret": "s3cret", "scopes": "r w", "callbackPort": 80}},
        {"oauth": {"enabled": True, "clientId": "c", "clientSecret": "s3cret", "scopes": ["r", "w"]}},
        {"auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "s3cret", "scopes": ["r", "w"]}},
    ],
    ids=["ours", "Claude Code", "Gemini CLI", "Cursor"],
)
def test_other_clients_spelling_is_read(keys):
    auth = server(**keys).auth
    assert auth in (AuthConfig("c", Secret("s3cret"), scope="r w", callback_port=port) for port in (0, 80))


def test_where_sign_ins_are_kept():
    servers = {"mcpServers": {"a": {"command": "x"}}}
    assert read(servers).auth_store == "file"
    for said, store in (({"store": "keyring"}, "keyring"), ({"store": "file"}, "file"), ({}, "file")):
        config = read({**servers, "auth": said})
        assert (config.auth_store, config.warnings) == (store, ())


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("get-token", ("get-token",)),
        (
            "~/bin/get-token --for 'my server' \"${TWO}\"",
            ("/home/me/bin/get-token", "--for", "my server", "two words"),
        ),
        ("run ${TWO}", ("run", "two words")),
        ("run # no comment", ("run", "#", "no", "comment")),
        (["~/run", "${TWO}", "", "a b"], ("/home/me/run", "two words", "", "a b")),
    ],
)
def test_a_command_is_words_and_no_shell(said, words):
    for key in ("headersCommand", "headersHelper", "headers_command"):
        assert server(**{key: said}).headers_command == words
    assert server().headers_command == ()


def test_a_backslash_is_part_of_a_path_on_windows(monkeypatch):
    assert split_command_line(r"a\ b 'c\d'") == ["a b", r"c\d"]
    monkeypatch.setattr(os, "name", "nt")
    assert split_command_line(r'C:\bin\get.exe "C:\My Files\x" /y') == [
        r"C:\bin\get.exe",
        r"C:\My Files\x",
        "/y",
    ]


MACHINE = {"grant": "client_credentials", "client_id": "c", "client_secret": "s3cret"}

ERRORS = [
    ({"auth": "oauth"}, "auth", "found a string", "write false for none, or an object"),
    ({"oauth": []}, "oauth", "found a list", "write false for none, or an object"),
    ({"auth": {}, "oauth": {}}, "", '"auth" and "oauth" mean the same key', "keep one of them"),
    ({"auth": {"scope": "a", "scopes": "b"}}, "auth", '"scope" and "scopes" mean the same key', "keep one"),
    ({"auth": {"client_id": 7}}, "auth.client_id", "found a number", "write a string"),
    ({"auth": {"scope": 7}}, "auth.scope", "found a number", 'such as "read write", or a list'),
    ({"auth": {"scope": [7]}}, "auth.scope[0]", "found a number", "in double quotes"),
    ({"auth": {"grant": "password"}}, "auth.grant", "found 'password'", 'write "authorization_code" or'),
    ({"auth": {"algorithm": "none"}}, "auth.algorithm", "found 'none'", "write one of ES256, "),
    ({"auth": {"callbackPort": 99_999}}, "auth.callbackPort", "found 99999", "from 0 to 65535"),
    ({"auth": {"mcp_remote": "no"}}, "auth.mcp_remote", "found a string", "write true or false"),
    ({"auth": {"enabled": "no"}}, "auth.enabled", "found a string", "write true or false"),
    (
        {"auth": {**MACHINE, "private_key": "k"}},
        "auth",
        "both a client_secret and a private_key",
        "keep the one the server knows",
    ),
    (
        {"auth": {"client_id": "c", "client_metadata_url": "https://x.example/c"}},
        "auth",
        "both a client_id and a client_metadata_url",
        "keep the client_id",
    ),
    ({"auth": {"client_secret": "s3cret"}}, "auth", "a client_secret without a client_id", "add the client"),
    (
        {"auth": {**MACHINE, "client_id": ""}},
        "auth",
        "a client_secret without a client_id",
        "add the client_id it belongs to",
    ),
    (
        {"auth": {"grant": "client_credentials", "client_id": "c"}},
        "auth",
        '"grant": "client_credentials" without a client_secret or a private_key',
        "add the one the server knows",
    ),
    (
        {"auth": {"grant": "client_credentials", "private_key": "k"}},
        "auth",
        "a private_key without a client_id",
        "add the client_id it belongs to",
    ),
    ({"headersCommand": 7}, "headersCommand", "found a number", "write the program and its arguments"),
    ({"headersHelper": {}}, "headersHelper", "found an object", "write the program and its arguments"),
    ({"headersCommand": ["a", 1]}, "headersCommand[1]", "found a number", "in double quotes"),
    ({"headersCommand": "a 'b"}, "headersCommand", "a quote that is not closed", "close it, or write a list"),
    ({"headersCommand": "a", "headersHelper": "b"}, "", "mean the same key", "keep one of them"),
]


@pytest.mark.parametrize(("keys", "path", "found", "remedy"), ERRORS)
def test_a_contradiction_is_an_error_that_says_where_and_what_would_do(keys, path, found, remedy):
    with pytest.raises(ConfigError) as raised:
        one(**keys)
    assert raised.value.path == "mcpServers.a" + (f".{path}" if path else "")
    assert found in raised.value.found
    assert remedy in raised.value.remedy
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("said", "found"),
    [({"store": "vault"}, "found 'vault'"), ({"store": 7}, "found a number"), (7, "found a")],
)
def test_a_store_we_do_not_have_is_an_error(said, found):
    with pytest.raises(ConfigError) as raised:
        read({"auth": said})
    assert found in str(raised.value)
    assert "keyring" in raised.value.remedy


PROBLEMS = [
    (
        {"auth": {"client_id": "c", "client_secret": "${NOPE}"}},
        "auth.client_secret: the environment variable",
    ),
    ({"auth": {"issuer": "as.example"}}, "auth.issuer: not the URL of an authorization server"),
    (
        {"auth": {"client_metadata_url": "http://x.example/c"}},
        "auth.client_metadata_url: not the URL of a client metadata",
    ),
    (
        {"auth": {"client_metadata_url": "https://x.example/"}},
        "auth.client_metadata_url: not the URL of a client metadata",
    ),
    ({"auth": {"scope": 'a"b'}}, "auth.scope: not a valid scope"),
    ({"headersCommand": ""}, "headersCommand: the command is empty"),
    ({"headersCommand": []}, "headersCommand: the command is empty"),
    ({"headersCommand": [" "]}, "headersCommand: the command is empty"),
    ({"headersCommand": "${NOPE} x"}, "headersCommand: the environment variable NOPE"),
    ({"headersCommand": ["x", "\0"]}, "headersCommand: not a valid argument"),
]


@pytest.mark.parametrize(("keys", "problem"), PROBLEMS)
def test_what_cannot_be_used_is_a_problem_of_this_server_alone(keys, problem):
    config = one(**keys)
    said = config.servers["a"].problem
    assert said is not None
    assert said.startswith(problem)
    assert config.warnings == ()


WARNINGS = [
    ({"auth": {"client_idd": "c"}}, "a.auth.client_idd: unknown key, ignored; 'client_id' may be meant."),
    ({"oauth": {"zzz": 1}}, "a.oauth.zzz: unknown key, ignored; the keys here are algorithm, callback_"),
    ({"atuh": {}}, "a.atuh: unknown key, ignored; 'auth' may be meant."),
    (
        {"headers": {"Authorization": "x"}, "auth": {"client_id": "c"}},
        "a.auth: not used beside an Authorization header; remove one of the two.",
    ),
    (
        {"headers": {"authorization": "x"}, "oauth": True},
        "a.oauth: not used beside an Authorization header; remove one of the two.",
    ),
    ({"auth": {**MACHINE, "callback_port": 7}}, 'a.auth.callback_port: not used by the grant "client_cred'),
    ({"auth": {**MACHINE, "algorithm": "ES256"}}, "a.auth.algorithm: not used without a private_key; remove"),
    (
        {"auth": {"client_id": "c", "private_key": "k"}},
        'a.auth.private_key: not used by the grant "authorization_code"; remove it, or change the grant.',
    ),
    ({"headersHelper": "a | b"}, "a.headersHelper: this is not run by a shell; write a script and name it"),
    (
        {"headersCommand": "a $(b)"},
        "a.headersCommand: this is not run by a shell; write a script and name it",
    ),
]


@pytest.mark.parametrize(("keys", "warning"), WARNINGS)
def test_what_is_of_no_use_is_a_warning(keys, warning):
    config = one(**keys)
    assert len(config.warnings) == 1
    assert config.warnings[0].startswith(f"{FILE}: mcpServers.{warning}")
    assert config.servers["a"].problem is None


@pytest.mark.parametrize("key", ["auth", "oauth", "headersCommand", "headersHelper"])
def test_a_local_server_is_not_signed_in_to(key):
    config = read({"mcpServers": {"a": {"command": "x", key: "y"}}})
    assert config.warnings == (f"{FILE}: mcpServers.a.{key}: not used by a server of type stdio; remove it.",)
    assert config.servers["a"].auth is None
    assert config.servers["a"].headers_command == ()


def test_a_fingerprint_is_the_old_one_until_something_is_said():
    assert server().fingerprint == "4fc89e8b"  # before there was any of this
    assert server(auth={"callback_port": 7, "mcp_remote": False}).fingerprint == server().fingerprint
    token = {"Authorization": "Bearer t"}
    assert server(headers=token, auth=False).fingerprint == server(headers=token).fingerprint
    others = [
        server(),
        server(auth=False),
        server(headersCommand="x"),
        server(headersCommand="x y"),
        server(headersCommand="x", auth=False),
        server(auth={"client_id": "c"}),
        server(auth={"client_id": "d"}),
        server(auth={"client_id": "c", "client_secret": "s"}),
        server(auth={"scope": "c"}),
        server(auth={"client_metadata_url": "https://x.example/c"}),
        server(auth=MACHINE),
    ]
    assert len({other.fingerprint for other in others}) == len(others)


# --- people -------------------------------------------------------------------------------------------------

PEOPLE = {"api_keys": "keys.json", "page": "127.0.0.1:8932"}


def of_people(server: dict[str, object], **keys: object) -> ServerConfig:
    return read({"mcpServers": {"a": {"url": URL, **server}}, **keys}).servers["a"]


def test_each_person_may_sign_in():
    for auth in ({"per_user": True}, {"perUser": True, "client_id": "c"}):
        found = of_people({"auth": auth}, http=PEOPLE)
        assert (found.per_user, found.problem) == (True, None)
    assert not of_people({"auth": {"per_user": False}}).per_user
    assert of_people({}).fingerprint == of_people({"auth": {"per_user": True}}, http=PEOPLE).fingerprint


@pytest.mark.parametrize(
    ("server", "keys", "problem"),
    [
        ({}, {}, "the config has no people"),
        ({}, {"http": {"api_keys": "keys.json"}}, "there is none; add"),
        ({}, {"http": PEOPLE, "expose": "transparent"}, "there is one sign-in for all"),
        ({"headersCommand": "get-token"}, {"http": PEOPLE}, "is one sign-in for all people"),
        ({"url": "https://u:p@x.example/mcp"}, {"http": PEOPLE}, "the user in its url"),
    ],
)
def test_where_people_can_not_sign_in_the_server_is_unusable(
    server: dict[str, object], keys: dict[str, object], problem: str
) -> None:
    found = of_people({"auth": {"per_user": True}, **server}, **keys)
    assert found.problem is not None
    assert found.problem.startswith("auth.per_user: ")
    assert problem in found.problem


@pytest.mark.parametrize(
    ("server", "error"),
    [
        (
            {"auth": {"per_user": True}, "headers": {"authorization": "Bearer x"}},
            "one sign-in for all people",
        ),
        ({"auth": {"per_user": True, **MACHINE}}, "this machine signs in, and no person"),
        ({"auth": {"per_user": "yes"}}, "found a string"),
    ],
)
def test_what_is_one_sign_in_for_all_is_none_of_each_person(server: dict[str, object], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        of_people(server, http=PEOPLE)


def test_what_has_no_effect_is_told():
    config = read({"mcpServers": {"a": {"url": URL, "auth": {"per_user": True, "mcp_remote": True}}}})
    assert "not used with per_user" in config.warnings[0]
