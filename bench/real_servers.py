"""Eight real MCP servers over stdio, from npm and PyPI, and a call of each that changes nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.subjects import HERE

NODE_MODULES = HERE.parent / "tests" / "e2e" / "node_modules" / "@modelcontextprotocol"
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
}


@dataclass(frozen=True)
class Server:
    """A server: how it is started, and the tool of its call with the arguments."""

    argv: list[str]
    env: Mapping[str, str]
    tool: str
    arguments: Mapping[str, object]


def eight_servers(folder: Path, mcpzip_python: str) -> dict[str, Server]:
    """The servers, by name; what they work on is made in ``folder``. Each has ``MCPZIP_BENCH`` in its
    environment, so that its processes are found. mcpzip_python: the interpreter in which the PyPI servers may
    be installed, else ours. Raises SystemExit if one isn't installed.
    """
    python = _python_with(("mcp_server_time", "mcp_server_git"), (mcpzip_python, sys.executable))
    repository = folder / "repository"
    repository.mkdir(parents=True)
    for words in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", *words], cwd=repository, env={**os.environ, **_GIT}, check=True)
    mark = {"MCPZIP_BENCH": str(folder)}
    servers = {"everything": Server(_node("everything", "stdio"), mark, "echo", {"message": "hello"})}
    for name in ("notes", "drafts"):
        (folder / name).mkdir()
        argv = _node("filesystem", str(folder / name))
        servers[name] = Server(argv, mark, "list_allowed_directories", {})
    for name in ("people", "projects"):
        env = {**mark, "MEMORY_FILE_PATH": str(folder / f"{name}.jsonl")}
        servers[name] = Server(_node("memory"), env, "read_graph", {})
    for name, zone in (("time", "Europe/Paris"), ("office", "America/New_York")):
        argv = [python, "-m", "mcp_server_time", "--local-timezone", zone]
        servers[name] = Server(argv, mark, "get_current_time", {"timezone": zone})
    argv = [python, "-m", "mcp_server_git", "--repository", str(repository)]
    servers["git"] = Server(argv, {**mark, **_GIT}, "git_status", {"repo_path": str(repository)})
    return servers


def _node(server: str, *words: str) -> list[str]:
    node, script = shutil.which("node"), NODE_MODULES / f"server-{server}" / "dist" / "index.js"
    if node is None or not script.exists():
        raise SystemExit("npm's servers are missing: npm ci --prefix tests/e2e")
    return [node, str(script), *words]


def _python_with(modules: tuple[str, ...], pythons: tuple[str, ...]) -> str:
    for python in pythons:
        done = subprocess.run(
            [python, "-c", f"import {', '.join(modules)}"], capture_output=True, check=False
        )
        if done.returncode == 0:
            return python
    raise SystemExit("PyPI's servers are missing: pip install mcp-server-time mcp-server-git")
