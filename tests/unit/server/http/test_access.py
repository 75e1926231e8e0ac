"""Where to listen, and who may come in."""

import errno
import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import ConfigError
from mcpzip.server.http.access import Access, access_to, read_address, read_token, take

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "host", "ip", "port"),
    [
        ("8931", "127.0.0.1", "127.0.0.1", 8931),
        (":8931", "127.0.0.1", "127.0.0.1", 8931),
        ("127.0.0.1:0", "127.0.0.1", "127.0.0.1", 0),
        ("localhost:1", "localhost", "127.0.0.1", 1),
        ("[::1]:0", "::1", "::1", 0),
        ("0.0.0.0:80", "0.0.0.0", "0.0.0.0", 80),
        ("[::]:65535", "::", "::", 65535),
    ],
)
def test_addresses(text: str, host: str, ip: str, port: int) -> None:
    address = read_address(text)
    assert (address.host, address.ip, address.port) == (host, ip, port)


@pytest.mark.parametrize(
    "text", ["", "localhost", "::1", "::1:80", "[::1]", "1.2.3.4:", "a:b", "-1", "http://127.0.0.1:80"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        read_address(text)


@pytest.mark.parametrize("text", ["65536", "127.0.0.1:99999"])
def test_a_port_that_is_not_there(text: str) -> None:
    with pytest.raises(ConfigError, match=r"there is no port \d{5}; choose one up to 65535"):
        read_address(text)


def test_a_host_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no host"):
        read_address("a..b:80")


def test_an_address_of_another_machine() -> None:
    with pytest.raises(ConfigError, match=r"--http: 192\.0\.2\.7 is no address of this machine; listen on"):
        take(read_address("192.0.2.7:0"))


@pytest.mark.parametrize(
    ("number", "port", "told"),
    [
        (errno.EACCES, 80, "port 80 needs more rights than mcpzip has; choose one above 1023."),
        (errno.EACCES, 8931, "port 8931 needs more rights than mcpzip has; choose another."),
        (errno.EADDRINUSE, 8931, "port 8931 of 127.0.0.1 is in use; end what listens there, or choose"),
        (errno.ENOMEM, 8931, f"port 8931 of 127.0.0.1 can't be had ({os.strerror(errno.ENOMEM)}); choose"),
    ],
)
def test_a_port_that_can_not_be_had(
    monkeypatch: pytest.MonkeyPatch, number: int, port: int, told: str
) -> None:
    def refuse(*args: object, **keys: object) -> socket.socket:
        raise OSError(number, "while attempting to bind")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(ConfigError) as caught:
        take(read_address(str(port)))
    assert str(caught.value).startswith(f"--http: {told}")


@given(st.text(max_size=20))
def test_any_text_is_an_address_or_said_to_be_none(text: str) -> None:
    if ":" in text.rstrip("0123456789")[:-1]:
        text = text.replace(":", "")  # no names are looked up here
    try:
        port = read_address(text).port
    except ConfigError as error:
        port = 0 if str(error).startswith("--http: ") else -1
    assert 0 <= port < 65536


def test_the_url_is_what_clients_use() -> None:
    assert read_address("0").url(81) == "http://127.0.0.1:81/mcp"
    assert read_address("[::1]:0").url(81) == "http://[::1]:81/mcp"


@pytest.mark.parametrize("at", ["0.0.0.0:0", "[::]:0", "192.0.2.7:80", "[2001:db8::1]:80"])
def test_whoever_opens_it_to_others_needs_a_token(at: str) -> None:
    with pytest.raises(ConfigError, match="other machines"):
        access_to(read_address(at), None, ["example.org"], [])
    assert access_to(read_address(at), TOKEN.encode(), ["example.org"], []).token == TOKEN.encode()


@pytest.mark.parametrize("at", ["0.0.0.0:0", "[::]:0"])
def test_whoever_takes_every_address_names_the_hosts(at: str) -> None:
    with pytest.raises(ConfigError, match="--allow-host"):
        access_to(read_address(at), TOKEN.encode(), [], [])


def test_names_and_origins_of_its_own_and_more() -> None:
    address = read_address("192.0.2.7:80")
    access = access_to(address, TOKEN.encode(), ["MCP.example.org", "x:8080"], ["https://App.example.org"])
    for host in (
        "127.0.0.1",
        "localhost:*",
        "[::1]:*",
        "192.0.2.7",
        "192.0.2.7:*",
        "mcp.example.org:*",
        "x:8080",
    ):
        assert host in access.hosts
    assert "x" not in access.hosts
    assert "x:*" not in access.hosts
    for origin in ("http://localhost:*", "http://127.0.0.1", "http://192.0.2.7:*", "https://app.example.org"):
        assert origin in access.origins
    assert "https://app.example.org:*" not in access.origins


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://X.example:443", "https://x.example"),
        ("http://x:80", "http://x"),
        ("https://x:80", "https://x:80"),
        ("chrome-extension://abc", "chrome-extension://abc"),
    ],
)
def test_an_origin_is_what_browsers_make_of_it(written: str, sent: str) -> None:
    assert access_to(read_address("0"), None, [], [written]).pages == (sent,)


def test_loopback_is_not_open_to_all() -> None:
    access = access_to(read_address("0"), None, [], [])
    assert isinstance(access, Access)
    assert not [host for host in access.hosts if host.startswith(("*", ":"))]
    assert all("://" in origin for origin in access.origins)


@pytest.mark.parametrize("host", ["*", "", "http://x", "x/y", "a b", "x:*", "x:123456", "*.example.org"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(ConfigError, match="no host"):
        access_to(read_address("0"), None, [host], [])


@pytest.mark.parametrize(
    "origin", ["*", "null", "", "app.example.org", "https://x/", "https://x:*", "https://a b", "https://"]
)
def test_what_is_no_origin(origin: str) -> None:
    with pytest.raises(ConfigError, match="no origin"):
        access_to(read_address("0"), None, [], [origin])


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_token_of_a_file(tmp_path: Path, end: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(f"{TOKEN}{end}".encode())
    file.chmod(0o600)
    environ = {"MCPZIP_TOKEN": "another-one-of-sixteen"}
    assert read_token(str(file), environ) == (TOKEN.encode(), None)
    assert environ == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o604, True), (0o400, False)])
def test_a_token_that_others_may_read(tmp_path: Path, mode: int, warned: bool) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(mode)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert (read_token(str(file), {})[1] is not None) == warned


def test_a_token_of_the_environment_is_taken_out_of_it() -> None:
    environ = {"MCPZIP_TOKEN": TOKEN, "PATH": "/bin"}
    assert read_token(None, environ) == (TOKEN.encode(), None)
    assert environ == {"PATH": "/bin"}
    assert read_token(None, environ) == (None, None)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "\n",
        "fifteen-or-less",
        " " * 20,
        "two words make a token",
        "sixteen-and-\x07-bell",
        "sixtéén-bytes-at-least",
        "x" * 5000,
    ],
)
def test_what_is_no_token(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(token, "utf-8")
    for path, environ in ((str(file), {}), (None, {"MCPZIP_TOKEN": token})):
        with pytest.raises(ConfigError) as caught:
            read_token(path, environ)
        assert token.strip() == "" or token not in str(caught.value).replace(str(tmp_path), "")


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read_token(str(tmp_path / "none"), {})
