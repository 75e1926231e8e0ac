"""A sign-in, and a place to keep it in: what the tests of the store share."""

from pathlib import Path

from keyring.backend import KeyringBackend

from mcpzip.auth import codec
from mcpzip.auth.folder import Folder
from mcpzip.auth.grant import Grant
from mcpzip.auth.keyring_store import KeyringStore
from mcpzip.auth.store import FileStore
from mcpzip.model.principal import PrincipalId

URL = "https://mcp.example/mcp"
OTHER = "https://mcp.example/mcp2"
ISSUER = "https://as.example"
GRANT = Grant(
    url=URL,
    resource="https://mcp.example",
    issuer=ISSUER,
    client={"client_id": "c", "client_secret": "hush-secret", "registration_access_token": "hush-manage"},
    access_token="hush-access",
    refresh_token="hush-refresh",
    scope="a b",
    expires_at=2.5,
    obtained_at=1.0,
    server_metadata={"issuer": ISSUER, "token_endpoint": f"{ISSUER}/token"},
    resource_metadata={"resource": URL},
)
SECRETS = (b"hush-access", b"hush-refresh", b"hush-secret", b"hush-manage")


class Ring(KeyringBackend):
    """A keyring in memory. broken: what it raises instead of answering."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.broken: Exception | None = None
        self.left = 1_000_000  # passwords it takes

    def get_password(self, service: str, username: str) -> str | None:
        if self.broken:
            raise self.broken
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.left <= 0 or self.broken:
            raise self.broken or ValueError(f"can't keep {password}")
        assert len(password.encode("utf-16-le")) <= 2_560
        self.left -= 1
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Place:
    """A folder of sign-ins, and what was warned of."""

    def __init__(self, path: Path) -> None:
        self.path, self.warnings, self.ring = path, [], Ring()
        self.folder = Folder(str(path), self.warnings.append)
        self.files = FileStore(self.folder)
        self.keyring = KeyringStore(self.folder, self.ring)

    def file(self, url: str = URL, person: PrincipalId | None = None) -> Path:
        return self.path / f"{codec.key(url, person)}.json"
