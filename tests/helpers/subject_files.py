"""Subject files of the conformance runner, for tests to change."""

from pathlib import Path

from mcpzip_conformance.subject import Subject

GOOD = """
title = "p"
[start]
command = ["{python}", "{here}/p.py", "{config}"]
env = { P_HOME = "{home}/p" }
[config]
template = { servers = "{servers}" }
stdio = '{"cmd": "{argv}"}'
[tools]
names = "{server}.{tool}"
[lacks]
modern = "It is old."
"""
HTTP = """
title = "p"
[start]
command = ["p", "{config}", "--port", "{port}"]
url = "http://127.0.0.1:{port}/mcp"
up = "ready at (.*)"
[config]
template = { servers = "{servers}" }
stdio = { cmd = "{argv}" }
http = { url = "{url}" }
upstream = "http"
[tools]
names = "{server}.{tool}"
alone = "{tool}"
[prompts]
names = "{server}.{prompt}"
[resources]
uris = "p://{server}/{scheme}/{rest}"
alone = "{uri}"
"""
TEAM = {"people", "issuer", "replicas", "key-rotation", "versions", "store"}
"""The features of gateways."""


def load(tmp_path: Path, text: str) -> Subject:
    """The subject of a file with ``text``."""
    file = tmp_path / "p.toml"
    file.write_text(text, encoding="utf-8")
    return Subject.load(file)
