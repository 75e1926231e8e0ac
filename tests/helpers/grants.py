"""Sign-ins for tests that begin when somebody has signed in."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.grant_caller import Caller
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls

from mcpzip.auth.grant import Grant
from mcpzip.auth.store import Store, WholeStore, open_store
from mcpzip.config.schema import AuthConfig, Config, Secret, ServerConfig


def kept_at(folder: Path) -> WholeStore:
    """The store beside a config in ``folder``. What is wrong with it fails the test."""

    def warn(warning: str) -> None:
        raise AssertionError(warning)

    return open_store(Config(path=str(folder / "config.json"), servers={}), warn)


def grant_of(auth: AuthControls, url: str, **members: object) -> Grant:
    """A grant for the server at ``url``, as signing in to ``auth`` gives one, but for ``members``."""
    minted = auth.mint(resource=url)
    issuer = auth.issuer
    known: dict[str, object] = {
        "url": url,
        "resource": url,
        "issuer": issuer,
        "client": minted["client"],
        "access_token": minted["access_token"],
        "refresh_token": minted["refresh_token"],
        "scope": minted["scope"] or "",
        "expires_at": minted["expires_at"],
        "server_metadata": {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "revocation_endpoint": f"{issuer}/revoke",
            "code_challenge_methods_supported": ["S256"],
        },
        "resource_metadata": {"resource": url, "authorization_servers": [issuer]},
    }
    return Grant(**{**known, **members})  # type: ignore[arg-type]


def server_at(url: str, **auth: object) -> ServerConfig:
    """A server called "shop" in a config. auth: members of its `AuthConfig`."""
    return ServerConfig(name="shop", transport="http", url=url, auth=AuthConfig(**auth))  # type: ignore[arg-type]


@pytest.fixture
def shop(fake_mcp: Callable[..., FakeServer]) -> FakeServer:
    """A server that wants a token, which is good for 600 s."""
    return fake_mcp(tools=["echo"], transport="http", oauth={"access_seconds": 600})


@pytest.fixture
def auth(shop: FakeServer) -> AuthControls:
    """The authorization server of ``shop``."""
    assert shop.auth is not None
    return shop.auth


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return kept_at(tmp_path)


def caller(store: Store, shop: FakeServer, auth: AuthControls, **config: object) -> Caller:
    """One process that calls ``shop``, by the clock of ``auth``. config: members of its `AuthConfig`."""
    return Caller(store, server_at(shop.url, **config), lambda: auth.now)


ROBOT: dict[str, object] = {
    "id": "robot",
    "secret": "s3cret-of-robot",
    "method": "client_secret_basic",
    "grants": ["client_credentials"],
}
"""A machine, as a fake authorization server knows it."""
AS_ROBOT: dict[str, object] = {
    "grant": "client_credentials",
    "client_id": "robot",
    "client_secret": Secret("s3cret-of-robot"),
}
"""The same as a config has it."""
