"""Who asks an authorization server for tokens, and how that is shown."""

import base64
import sys
from pathlib import Path

import pytest

from mcpzip.auth.client import (
    Client,
    authenticate,
    callback_port,
    check_registered,
    configured_client,
    read_client,
)
from mcpzip.auth.client_credentials import token_form
from mcpzip.auth.grant import Grant
from mcpzip.auth.metadata import ServerMetadata
from mcpzip.config.schema import AuthConfig, Secret
from mcpzip.model.errors import LoginError

SERVER = ServerMetadata("https://as.example", "https://as.example/authorize", "https://as.example/token")


def of_methods(*methods: str) -> ServerMetadata:
    return ServerMetadata(
        "https://as.example", "https://as.example/a", "https://as.example/t",
        token_endpoint_auth_methods_supported=list(methods),
    )  # fmt: skip


def test_a_secret_goes_into_the_header_or_the_form() -> None:
    form = {"grant_type": "refresh_token"}
    headers = authenticate(Client("a:b", "s:t/ü", "client_secret_basic"), form)
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"a%3Ab:s%3At%2F%C3%BC"
    assert form == {"grant_type": "refresh_token"}
    assert authenticate(Client("a", "s", "client_secret_post"), form) == {}
    assert form == {"grant_type": "refresh_token", "client_id": "a", "client_secret": "s"}


@pytest.mark.parametrize("method", ["", "none", "private_key_jwt"])
def test_a_client_without_a_secret_shows_none(method: str) -> None:
    form: dict[str, str] = {}
    assert authenticate(Client("a", "s", method), form) == form == {}


@pytest.mark.parametrize("method", ["tls_client_auth", "\x1b[2J"])
def test_a_method_that_is_not_known_is_an_error(method: str) -> None:
    with pytest.raises(LoginError, match="not known here") as raised:
        authenticate(Client("a", "s", method), {})
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (Client("a", "s", "private_key_jwt"), "not known here"),
        (Client("a", "", "client_secret_basic"), "gives us no client secret"),
        (Client("a", "s", "client_secret_basic"), ""),
        (Client("a"), ""),
    ],
)
def test_a_registration_has_to_be_enough(client: Client, why: str) -> None:
    if not why:
        check_registered(client)
        return
    with pytest.raises(LoginError, match=why):
        check_registered(client)


@pytest.mark.parametrize(
    ("methods", "used"),
    [
        ((), "client_secret_basic"),
        (("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        (("client_secret_post",), "client_secret_post"),
        (("private_key_jwt",), "client_secret_basic"),
    ],
)
def test_the_config_s_secret_is_shown_as_the_server_takes_it(methods: tuple[str, ...], used: str) -> None:
    client = configured_client(AuthConfig(client_id="a", client_secret=Secret("s")), of_methods(*methods))
    assert client == Client("a", "s", used)


def test_a_registration_is_read_as_servers_write_it() -> None:
    said: dict[str, object] = {
        "client_id": "a",
        "client_secret": "",
        "token_endpoint_auth_method": None,
        "redirect_uris": None,
        "client_id_issued_at": 1.5,
        "client_secret_expires_at": 0,
        "logo_uri": 7,
    }
    assert read_client(said) == Client("a", client_id_issued_at=1.5, client_secret_expires_at=0)
    for wrong in ({}, {"client_id": ""}, {"client_id": 7}, {"client_id": "a", "redirect_uris": [7]}):
        assert read_client(dict(wrong)) is None
    assert "hush" not in repr(Client("a", "hush-hush"))


def test_the_port_that_a_registration_comes_back_to() -> None:
    for uris, port in (
        (["https://x.example/", "http://127.0.0.1:81/callback"], 81),
        (["http://localhost/callback"], 0),
        (["http://127.0.0.1:99999/"], 0),
        ([7], 0),
        (None, 0),
    ):
        assert callback_port(Grant(url="https://mcp.example", client={"redirect_uris": uris})) == port
    assert callback_port(None) == 0


# ---- the machine's own credentials


def with_key(folder: Path, key: str = "no key") -> AuthConfig:
    path = folder / "key.pem"
    path.write_text(key)
    return AuthConfig(client_id="robot", grant="client_credentials", private_key=str(path))


async def test_a_key_signs_who_asks_for_the_issuer(tmp_path: Path) -> None:
    import jwt
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    config = with_key(tmp_path, pem.decode())
    client = configured_client(config, SERVER)
    assert client == Client("robot", "", "private_key_jwt")
    seen = []
    for _ in range(2):
        form, headers = await token_form(config, client, SERVER)
        assert headers == {}
        assert form.pop("grant_type") == "client_credentials"
        assert form.pop("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        said = jwt.decode(
            form.pop("client_assertion"), key.public_key(), ["ES256"], audience="https://as.example"
        )
        assert form == {}
        assert (said["iss"], said["sub"], said["exp"] - said["iat"]) == ("robot", "robot", 300)
        seen.append(said["jti"])
    assert seen[0] != seen[1]


@pytest.mark.parametrize("missing", ["jwt", "cryptography"])
async def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "jwt":
        monkeypatch.setitem(sys.modules, "jwt", None)
    else:
        monkeypatch.setattr("jwt.encode", lambda *_, **__: (_ for _ in ()).throw(NotImplementedError))
    with pytest.raises(LoginError, match=r'pip install "mcpzip\[jwt\]"'):
        await token_form(with_key(tmp_path), Client("robot"), SERVER)


async def test_a_key_that_can_t_be_used_is_a_sentence(tmp_path: Path) -> None:
    config = with_key(tmp_path)
    with pytest.raises(LoginError, match="can't be used") as raised:
        await token_form(config, Client("robot"), SERVER)
    assert config.private_key in str(raised.value)
    with pytest.raises(LoginError, match="can't be used"):
        await token_form(AuthConfig(private_key=str(tmp_path / "none")), Client("robot"), SERVER)
    with pytest.raises(LoginError, match="publishes no metadata"):
        await token_form(config, Client("robot"), None)
