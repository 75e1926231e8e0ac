"""No registered secret is ever said, in any spelling; other words are left as they are."""

import base64
import html
import json
import threading
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcpzip.auth.grant import Grant
from mcpzip.cli.call import _RpcError
from mcpzip.config import Secret, parse
from mcpzip.model import redaction
from mcpzip.model.errors import (
    ConfigError,
    LoginNeededError,
    McpzipError,
    UpstreamError,
)
from mcpzip.model.redaction import MOST, SHORTEST, Secrets, looks_secret, redact, register, register_header
from mcpzip.wire import RpcError, UpstreamRpcError

SECRET = 'tök/en+"1'
texts = st.text(st.sampled_from("ab…%+/\"\\\n é€𝄞'"), max_size=30) | st.text(max_size=30)
secrets = st.text(st.sampled_from("ab…%+/\"\\ é'"), min_size=SHORTEST, max_size=9) | st.text(
    min_size=SHORTEST, max_size=9
)


KIND = "PRIVATE " + "KEY"
"""So that nothing takes this file for one that holds a key."""


def kept(*values: str) -> Secrets:
    found = Secrets()
    for value in values:
        found.keep(value)
    return found


@given(st.lists(secrets, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=4), st.data())
def test_no_secret_survives(values, pieces, data):
    """Also where secrets overlap, or one is made by leaving out another."""
    cut = data.draw(st.integers(0, 9))
    mixed = [*values, values[0][:cut] + values[-1], values[-1][cut:], *pieces]
    text = "".join(data.draw(st.permutations(mixed)))
    shown = kept(*values).conceal(text)
    assert not [value for value in values if len(value.strip()) >= SHORTEST and value.strip() in shown]


@given(secrets, texts)
def test_no_spelling_of_it_survives(value, around):
    value = value.strip()
    assume(len(value) >= SHORTEST)
    data = value.encode("utf-8", "replace")
    spellings = [
        *(quote(data, safe=""), quote(data), quote_plus(data), quote(data, safe="").lower()),
        *(json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]),
        *(base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()),
    ]
    shown = kept(value).conceal(around.join([*spellings, ""]))
    for spelling in spellings:
        if spelling != quote(data, safe="").lower() or value.islower():
            assert spelling not in shown


@given(st.text(max_size=5), secrets, st.text(max_size=5))
def test_basic_credentials_do_not_survive(user, value, around):
    value = value.strip()
    assume(len(value) >= SHORTEST)
    credentials = base64.b64encode(f"{user}:{value}".encode("utf-8", "replace")).decode()
    assert credentials not in kept(value).conceal(f"Basic {credentials} {around}")


@given(st.lists(secrets, max_size=4), texts)
def test_other_words_are_left_as_they_are(values, text):
    found = kept(*values)
    if not redaction._found(text, found._all_encodings()):
        assert found.conceal(text) is text


def test_what_overlaps_is_left_out_whole():
    found = kept("abcdef", "defghi", "xyzxyz")
    assert found.conceal("1abcdefghi2xyzxyzxyz3") == "1…2…3"
    assert found.conceal("abcde fghi") == "abcde fghi"
    assert kept("ab…cdef", "SECRET").conceal("abSECRETcdef") == "…"


def test_a_file_of_several_lines_is_secret_line_by_line():
    key = f"-----BEGIN {KIND}-----\nMIGHAgEAMBMGByqGSM49\nAgEG\n-----END {KIND}-----\n"
    assert kept(key).conceal("it said MIGHAgEAMBMGByqGSM49, AgEG") == "it said …, AgEG"


def test_of_a_pem_file_the_last_line_is_secret_too():
    key = f"-----BEGIN {KIND}-----\nMIGHAgEAMBMGByqGSM49\nAgEGaB1==\n-----END {KIND}-----\n"
    for written in (key, key.replace("\n", "\\n")):
        assert kept(written).conceal("it said MIGHAgEAMBMGByqGSM49, AgEGaB1==") == "it said …, …"


def php(text: str) -> str:
    return json.dumps(text).replace("/", "\\/")


def dot_net(text: str) -> str:
    return "".join(
        sign if sign.isascii() and sign.isalnum() else f"\\u{unit.hex().upper()}"
        for sign in text
        for unit in units(sign)
    )


def units(sign: str) -> list[bytes]:
    data = sign.encode("utf-16-be")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def java_script(text: str) -> str:
    return quote(text, safe="!'()*-._~")


def form(text: str) -> str:
    return quote_plus(text).replace("%2A", "*")


def entities(text: str) -> str:
    return "".join(f"&#{ord(sign)};" if sign in "+/'\"" else html.escape(sign) for sign in text)


def octets(text: str) -> str:
    return "".join(f"%{octet:02x}" for octet in text.encode())


ESCAPING = [
    json.dumps,
    php,
    dot_net,
    lambda text: json.dumps(text, ensure_ascii=False).replace("&", "\\u0026"),  # Go
    repr,
    quote,
    java_script,
    form,
    octets,
    lambda text: "".join(f"\\u{{{ord(sign):x}}}" for sign in text),
    lambda text: "".join(f"\\x{ord(sign):02X}" if sign < "\x80" else sign for sign in text),
    html.escape,
    entities,
    lambda text: "".join(f"&#x{ord(sign):X};" for sign in text),
]
ENCODING = [
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    lambda text: text.encode().hex(),
]
printable = st.text(
    st.sampled_from("abcXYZ019 +/\\\"'%&;#<>=é€𝄞") | st.characters(min_codepoint=33, max_codepoint=0x2FF),
    min_size=8,
    max_size=20,
).filter(lambda text: text.isprintable() and text.strip() == text)


@settings(max_examples=300)
@given(
    printable,
    st.lists(st.sampled_from(ESCAPING), max_size=2)
    | st.tuples(st.sampled_from(ENCODING), st.sampled_from(ESCAPING)),
    st.sampled_from(["", "x ", "é="]),
)
def test_no_escape_hides_a_secret(value, spellings, before):
    spelt = value
    for spell in spellings:
        spelt = spell(spelt)
    shown = kept(value).conceal(f"{before}{spelt}, and so on")
    assert value not in shown
    assert spelt not in shown


def test_of_an_escaped_text_only_the_secret_is_left_out():
    found = kept("k/é+1234")
    said = 'C:\\users\\new %41 100% R&D &amp; "k\\/\\u00E9\\u002b1234" &nosuch; \\ud83d k%2f%c3%A9%2B1234\\n'
    assert found.conceal(said) == 'C:\\users\\new %41 100% R&D &amp; "…" &nosuch; \\ud83d …\\n'


@pytest.mark.parametrize(
    "unit", ["%25", "\\\\", "&amp;", "\\u005c", "%", "\\", "&", "%41", "\\u{5c}", "&#38;#"]
)
def test_the_time_to_undo_escapes_is_linear(unit):
    found = kept("k/é+1234")
    text = unit * (250_000 // len(unit))
    begun = time.process_time()
    assert found.conceal(text) is text
    assert time.process_time() - begun < 1.25


def test_what_is_short_or_blank_is_no_secret():
    found = kept("", "     ", "abcde", "  abcde  ", "\n")
    assert found.conceal("abcde      ") == "abcde      "


def test_of_those_that_pass_the_oldest_are_forgotten():
    found = kept("one-of-the-config")
    for number in range(MOST):
        found.keep(f"secret-{number:04}", passing=True)
    found.keep("secret-0000", passing=True)
    found.keep("another-one", passing=True)
    assert found.conceal("secret-0000 secret-0001 secret-0002 another-one") == "… secret-0001 … …"
    assert found.conceal("one-of-the-config") == "…"


def test_several_threads_may_keep_and_conceal():
    found, wrong = Secrets(), []

    def work(number: int) -> None:
        for step in range(30):
            found.keep(f"secret-{number}-{step}")
            if found.conceal(f"a secret-{number}-{step} b") != "a … b":
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "value", "said", "shown"),
    [
        ("Authorization", "Bearer abcdefgh", "Bearer abcdefgh", "Bearer …"),
        ("authorization", "abcdefgh", "abcdefgh", "…"),
        ("X-Key", " k-123456 ", "k-123456", "…"),
        ("Authorization", "Basic dXNlcjpodW50ZXIyMg==", "dXNlcjpodW50ZXIyMg== hunter22", "… …"),
        ("Authorization", "Basic not-base64!", "Basic not-base64!", "Basic …"),
        ("Authorization", "Bearer t", "Bearer t", "Bearer t"),
        ("Accept", "application/json", "application/json", "application/json"),
        ("X-Tenant", "acme-77-berlin", "acme-77-berlin", "…"),
        ("X-JWT", "eyJh.eyJz.c2ln", "eyJh.eyJz.c2ln", "…"),
        ("X-Session", "s3ss10n", "s3ss10n", "…"),
        (
            "Cookie",
            "theme=dark; a=s-123456; b=q%2Fw-9999",
            "s-123456 q/w-9999 dark",
            "… … dark",
        ),
        ("Authorization", 'Digest username="ada", response="0a1b2c3d"', "0a1b2c3d", "…"),
        ("X-Toolsets", "issues,pull_requests", "issues", "issues"),
        ("X-Api-Version", "2022-11-28", "2022-11-28", "2022-11-28"),
    ],
)
def test_of_a_header_the_credentials_are_secret(name, value, said, shown):
    register_header(name, value)
    assert redact(said) == shown


def test_names_of_secrets_are_known():
    yes = (
        "SLACK_TOKEN token api_key API-KEY apiKey APIKEY DB_PASSWORD passwd clientSecret GH_PAT Authorization"
        " JWT X-JWT SESSION X-Session CONNECTION_STRING connectionString otp X_OTP sid sig AccountKey"
        " API_KEYS"
    )
    no = "HOME PATH DEBUG author AUTHOR monkey KEYBOARD PORT region pattern compass host"
    no += " SESSION_TIMEOUT signal design obsidian keyboard_layout hotpot"
    assert [name for name in yes.split() if not looks_secret(name)] == []
    assert [name for name in no.split() if looks_secret(name)] == []


def test_errors_are_built_without_secrets():
    register(SECRET)
    errors = [
        McpzipError(f"It said {SECRET}."),
        ConfigError("f", "p", f"found {SECRET}", f"not {SECRET}"),
        UpstreamError("s", f"it ended, saying “{SECRET}”", f"Ask {SECRET}."),
        LoginNeededError("s", f"because {SECRET}", "mcpzip auth login s"),
        UpstreamRpcError("s", RpcError(-1, f"no such {SECRET}")),
    ]
    for error in errors:
        assert SECRET not in str(error) + repr(error) + str(error.args)
        assert "…" in str(error)
    told, passed_on = errors[2], errors[4]
    assert isinstance(told, UpstreamError)
    assert SECRET not in told.reason + told.remedy
    assert isinstance(passed_on, UpstreamRpcError)
    assert (
        passed_on.error.message == f"no such {SECRET}"
    )  # its words are the server's, and pass byte for byte


@pytest.mark.parametrize("data", [rb'"Q7\/9\u002B\u00C4x"', b'{"a": ["Q7%2F9%2b%c3%84x"]}'])
def test_the_data_of_an_error_is_shown_without_secrets(data):
    register("Q7/9+Äx")
    told = _RpcError(UpstreamRpcError("s", RpcError(-1, "no", data))).message
    assert told.endswith(' no "…"' if data[:1] == b'"' else ' no {"a": ["…"]}')


def test_secrets_of_grants_and_configs_are_kept():
    Secret("gemini-key")
    Grant(
        url="https://x",
        access_token="access-1",
        refresh_token="refresh-1",
        client={
            "client_id": "client-id",
            "client_secret": "cs-12345",
            "registration_access_token": "rat-1234",
        },
    )
    said = "gemini-key access-1 refresh-1 cs-12345 rat-1234 client-id"
    assert redact(said) == "… … … … … client-id"


@pytest.mark.parametrize(
    ("server", "secret"),
    [
        ({"args": ["run", "-e", "GITHUB_TOKEN=ghp_0123456", "image"]}, "ghp_0123456"),
        ({"args": ["run", "--env", "GITHUB_TOKEN=ghp_0123456"]}, "ghp_0123456"),
        ({"args": ["run", "--env=GITHUB_TOKEN=ghp_0123456"]}, "ghp_0123456"),
        ({"args": ["run", "-eGITHUB_TOKEN=ghp_0123456"]}, "ghp_0123456"),
        ({"args": ["run", "-e", "OPAQUE=${OPAQUE}"]}, "0paque-value"),
        ({"args": ["build", "--build-arg", "NPM_TOKEN=npm_0123456"]}, "npm_0123456"),
        ({"args": ["DB_PASSWORD=pw-012345", "server"]}, "pw-012345"),
        ({"args": ["-c", "API_KEY='k 012345' exec server --otp 998877"]}, "k 012345"),
        ({"args": ["-c", "API_KEY='k 012345' exec server --otp 998877"]}, "998877"),
        ({"args": ["--otp", "998877"]}, "998877"),
        ({"args": ["--connection-string", "opaque-0123"]}, "opaque-0123"),
        ({"args": ["-H", "X-Key: hk-012345"]}, "hk-012345"),
        ({"args": ["-HX-Odd: hk-012345"]}, "hk-012345"),
        ({"args": ["--header=X-Odd: hk-012345"]}, "hk-012345"),
        ({"args": ["--header", "Cookie: a=ck-012345; b=ck-987654"]}, "ck-987654"),
        ({"args": ["-u", "ada:pw-012345"]}, "pw-012345"),
        ({"args": ["--dsn=postgres://u:pw-012345@h/db"]}, "pw-012345"),
        ({"args": ["--dsn", "postgres://u:p/w@0#12345@h/db"]}, "p/w@0#12345"),
        ({"args": ["--config", '{"db": {"password": "pw-012345"}}']}, "pw-012345"),
        ({"args": ['x --config \'{"db": {"password": "pw-012345"}}\'']}, "pw-012345"),
        ({"args": ['--config={"apiKey": "pw-012345"}']}, "pw-012345"),
        ({"args": ["-c {'x': 1} --otp 998877"]}, "998877"),
        ({"args": ["--token", "-Pw012345"]}, "-Pw012345"),
        ({"args": ["Bearer bt-012345"]}, "bt-012345"),
        ({"args": ["Authorization=Bearer bt-012345"]}, "bt-012345"),
        ({"args": ["X-Key: hk-012345"]}, "hk-012345"),
        ({"args": ["--token:pw-012345"]}, "pw-012345"),
        ({"args": ["/token:pw-012345"]}, "pw-012345"),
        ({"args": ["--opts=--token pw-012345"]}, "pw-012345"),
        ({"args": ["--db=u:pw/012345@tcp(127.0.0.1:3306)/db"]}, "pw/012345"),
        ({"args": ["u:pw-012345@db.example:5432"]}, "pw-012345"),
        ({"args": ["--creds", "u:pw-012345"]}, "pw-012345"),
        ({"args": ['{"headers": {"X-Odd": "hk-012345"}}']}, "hk-012345"),
        ({"args": ["--headers", '{"X-Odd": "hk-012345"}']}, "hk-012345"),
        ({"env": {"OPTIONS": "Authorization: Bearer bt-012345\nX-Other: 1"}}, "bt-012345"),
        ({"env": {"EXTRA_HEADERS": "X-Odd: hk-012345"}}, "hk-012345"),
        ({"env": {"OTLP_HEADERS": "x-odd=hk-012345,x-more=1"}}, "hk-012345"),
        ({"env": {"MCP_HEADERS": '{"X-Odd": "hk-012345"}'}}, "hk-012345"),
        ({"env": {"OPTIONS": "--fast --token pw-012345"}}, "pw-012345"),
        ({"env": {"OPTIONS": "--token=pw-012345"}}, "pw-012345"),
        ({"env": {"DB_CREDS": "u:pw-012345"}}, "pw-012345"),
        ({"env": {"DSN": "u:pw-012345@tcp(h:1)/db"}}, "pw-012345"),
        ({"env": {"JWT": "eyJh.eyJz.c2ln"}}, "eyJh.eyJz.c2ln"),
        ({"env": {"SESSION": "session-0123"}}, "session-0123"),
        ({"env": {"CONNECTION_STRING": "opaque-0123"}}, "opaque-0123"),
        ({"env": {"DB": "Server=h;User Id=u;Password=p w,012345;Encrypt=true"}}, "p w,012345"),
        (
            {"env": {"AZ": "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=a2V5MDEyMw=="}},
            "a2V5MDEyMw==",
        ),
        ({"env": {"BLOB": "AccountName=n;AccountKey=a2V5MDEyMw=="}}, "a2V5MDEyMw=="),
        ({"env": {"PG": "host=h password='p w 012345' user=u"}}, "p w 012345"),
        (
            {"env": {"GCP": '{"client_email": "a@b", "private_key": "-----B\\nMIIEvQ0123456789ab"}'}},
            "MIIEvQ0123456789ab",
        ),
        ({"env": {"OPTS": '{"a": [{"apiKey": ["k-012345"]}]}'}}, "k-012345"),
        ({"env": {"URLS": "https://h/a?sid=s-012345 https://h/b?sig=g-012345"}}, "g-012345"),
        ({"url": "https://h/mcp?sid=s-012345"}, "s-012345"),
        ({"url": "https://h/mcp?code=c-012345"}, "c-012345"),
        ({"url": "https://h/mcp?sig=c%2F012345"}, "c/012345"),
        ({"url": "https://h/s/0123456789abcdef0123456789abcdef/mcp"}, "0123456789abcdef0123456789abcdef"),
        ({"url": "https://h", "headers": {"X-Session": "${OPAQUE}"}}, "0paque-value"),
        ({"url": "https://h", "headers": {"X-Odd": "v1 ${OPAQUE}"}}, "0paque-value"),
        ({"url": "https://h", "headers": {"X-Odd": "anything-1"}}, "anything-1"),
    ],
)
def test_a_secret_is_found_wherever_a_config_has_it(server, secret):
    if "url" not in server:
        server = {"command": "x", **server}
    parse(json.dumps({"mcpServers": {"a": server}}).encode(), "/f", {"OPAQUE": "0paque-value"})
    assert secret not in redact(f"it said: {secret}.")


@pytest.mark.parametrize(
    "plain",
    [
        "application/json text/event-stream en-US,en;q=0.9",
        "true disabled required bearer password 2025-06-18",
        "https://mcp.example.com:8443/npm/@scope/streamable-http/mcp?page=second",
        "--read-only --port 808080 --project my-project --auth-type oauth-device",
        "run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server",
        "LOG_LEVEL=warning NODE_ENV=production",
        "--token --read-only --auth-type=oauth-device --log:verbose-mode",
        "image:latest@sha256:0123456789abcdef npm:left-pad@1.30.21 git@github.com:owner/repository",
        "level: debugging note:nothing/special mailto:somebody@example.com C:\\Users\\somebody",
    ],
)
def test_ordinary_words_of_a_config_are_still_said(plain):
    words = plain.split()
    servers = {
        "a": {
            "command": "x",
            "args": words,
            "env": {"AUTH": "disabled", "TOKEN": "required", "PLAIN": plain},
        },
        "b": {
            "url": next((word for word in words if "://" in word), "https://h"),
            "headers": {"Accept": "application/json, text/event-stream", "X-Toolsets": "issues,users"},
        },
    }
    parse(json.dumps({"mcpServers": servers}).encode(), "/f", {})
    assert redact(plain) == plain


def test_secrets_of_a_servers_config_are_kept(tmp_path):
    (tmp_path / "key.pem").write_text("")
    local = {
        "command": "x",
        "args": [
            *("--token", "arg-token", "--api-key=arg-key-1"),
            *("--header", "X-K: Bearer arg-header", "--port", "808080"),
        ],
        "env": {
            "API_KEY": "env-key-1",
            "PLAIN": "plain-value",
            "FROM": "${SOME_VAR}",
            "MORE": "prefix-${OTHER}",
            "WHERE": "${HOME}",
            "KEY_FILE": str(tmp_path / "key.pem"),
            "DATABASE": "postgres://me:db-password@db.example/x",
        },
    }
    remote = {
        "url": "https://me:url-password@x.example/mcp?api_key=url-key-1&page=not-a-secret&t=${MY_TOKEN}",
        "headers": {"X-Api-Key": "tenant-1", "User-Agent": "agent-007", "X-Toolsets": "issues"},
        "headersCommand": "get --password command-pass ${HOST_NAME}",
    }
    env = {
        "SOME_VAR": "some-var-value",
        "OTHER": "other-value",
        "HOME": str(tmp_path),
        "MY_TOKEN": "my-token-value",
        "HOST_NAME": "host.example",
    }
    document = {"mcpServers": {"a": local, "b": remote}}
    parse(json.dumps(document).encode(), "/f", env)
    secret = "arg-token arg-key-1 arg-header env-key-1 some-var-value other-value db-password url-password"
    secret += " url-key-1 my-token-value tenant-1 command-pass"
    plain = f"808080 plain-value {tmp_path} {tmp_path / 'key.pem'} db.example x.example"
    plain += " not-a-secret agent-007 issues host.example"
    assert redact(secret) == " ".join("…" for _ in secret.split())
    assert redact(plain) == plain
