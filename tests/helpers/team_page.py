"""A running `mcpzip serve --http` with a page for a team, and browsers of its people."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.serve_http import listening, mcpzip_command
from helpers.ui_client import Answer, Page


class Browser(Page):
    """Of a person. key: their API key."""

    def __init__(self, origin: str, key: str) -> None:
        super().__init__(f"{origin}/#token={key}")

    def sign_in(self) -> "Browser":
        answer = self.post("/sign-in", {"key": self.token})
        assert answer.status == 303, answer
        assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.root = answer.headers["location"].removesuffix("/")
        return self

    def call(self, tool: str) -> Answer:
        return self.submit(f"/tools/{tool}", json="{}")


@contextmanager
def running(folder: Path, http: dict[str, object], servers: dict[str, object]) -> Iterator[tuple[str, str]]:
    """`mcpzip serve --http` with ``http``: the origin of its page, and where it listens; the URL of `/mcp`
    where that is the same.
    """
    config = folder / "config.json"
    access = [{"groups": ["clerks"], "allow": "desk"}, {"groups": ["keepers"], "allow": "*"}]
    config.write_text(
        json.dumps(
            {
                "mcpServers": servers,
                "http": http,
                "access": access,
                "audit": True,
                "results": {"keep": 500},
                "shared": False,
            }
        )
    )
    with listening(mcpzip_command(folder), config) as url:
        found = re.search(
            r"^page (\S+)/(?: at (\S+)/)?$", config.with_suffix(".serve.log").read_text("utf-8"), re.MULTILINE
        )
        assert found
        yield found[1], found[2] or url
