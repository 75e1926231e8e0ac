"""Writes what registries read: server.json, the line in README.md that proves whose it is, labels of images.

Run it with ``python tools/manifests.py`` or ``nox -s manifests``. A test compares the files. The name and the
version come from pyproject.toml. ``--name NAMESPACE/mcpzip`` changes the name there first. ``--check`` writes
nothing, and exits 1 if a file differs or nothing can be published in the namespace (docs/packaging.md).
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
"""A name in a registry: a namespace, which is a domain backwards, and one slash."""
RESERVED = "com.example"
"""The namespace of nobody (RFC 2606): nothing can be published in it."""

_MARKER = "<!-- mcp-name: {} -->"
_LABELS = {"io.modelcontextprotocol.server.name": "name", "org.opencontainers.image.version": "version"}


def read_project(root: Path = ROOT) -> dict[str, str]:
    """What pyproject.toml says: name (in registries), package, version, repository ("" if there is none)."""
    data = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    return {
        "name": data["tool"]["mcpzip"]["registry-name"],
        "package": data["project"]["name"],
        "version": data["project"]["version"],
        "repository": data["project"].get("urls", {}).get("Repository", ""),
    }


def server_json(project: Mapping[str, str]) -> str:
    """The text of server.json."""
    source = {"repository": {"url": project["repository"], "source": "github"}}
    manifest = {
        "$schema": SCHEMA,
        "name": project["name"],
        "title": "mcpzip",
        "description": "All your MCP servers behind one, which shows three tools: search, describe, execute.",
        "version": project["version"],
        **(source if project["repository"] else {}),
        "packages": [
            {
                "registryType": "pypi",
                "registryBaseUrl": "https://pypi.org",
                "identifier": project["package"],
                "version": project["version"],
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "serve"}],
                "environmentVariables": [
                    {
                        "name": "MCPZIP_CONFIG",
                        "description": "The config with your servers, if it isn't in the usual place "
                        "(`uvx mcpzip init` makes one).",
                        "format": "filepath",
                    },
                    {
                        "name": "MCPZIP_DAEMON",
                        "description": "off: serve in this process. Otherwise one process in the background "
                        "serves all clients of this config.",
                        "choices": ["off"],
                    },
                ],
            }
        ],
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def readme(text: str, project: Mapping[str, str]) -> str:
    """README.md with the line that names the server: a registry looks for it in the description on PyPI."""
    lines = [line for line in text.rstrip("\n").split("\n") if not line.startswith(_MARKER.partition("{")[0])]
    return "\n".join(lines).rstrip("\n") + f"\n\n{_MARKER.format(project['name'])}\n"


def dockerfile(text: str, project: Mapping[str, str]) -> str:
    """The Dockerfile with its labels."""
    for label, key in _LABELS.items():
        text = re.sub(rf'(?<={re.escape(label)}=")[^"]*', project[key], text)
    return text


def files(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Every file that this tool writes, and what it must contain."""
    project = read_project(root)
    yield root / "server.json", server_json(project)
    for name, made in (("README.md", readme), ("Dockerfile", dockerfile)):
        yield root / name, made((root / name).read_text("utf-8"), project)


def problems(root: Path = ROOT) -> list[str]:
    """Why nothing may be published now; empty if it may."""
    found = [
        f"{path.name} differs from pyproject.toml: run python tools/manifests.py"
        for path, text in files(root)
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    name = read_project(root)["name"]
    if name.startswith(f"{RESERVED}/"):
        command = "python tools/manifests.py --name io.github.ACCOUNT/mcpzip"
        found.append(f"{name} is in a namespace that nobody has: run {command}")
    return found


def rename(name: str, root: Path = ROOT) -> None:
    """Changes the name in pyproject.toml. Raises ValueError if it is none."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name in a registry: write NAMESPACE/NAME, as io.github.ACCOUNT/mcpzip"
        )
    path = root / "pyproject.toml"
    text = re.sub(r'(?m)^(registry-name = )".*"$', rf'\1"{name}"', path.read_text("utf-8"))
    path.write_text(text, "utf-8", newline="\n")


def main(argv: list[str], root: Path = ROOT) -> str | None:
    """Does what the command line says. Returns what is wrong, if anything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--name", metavar="NAMESPACE/NAME", help="the name in registries, from now on")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if nothing may be published"
    )
    options = parser.parse_args(argv)
    if options.check:
        return "\n".join(problems(root)) or None
    if options.name:
        try:
            rename(options.name, root)
        except ValueError as error:
            return str(error)
    for path, text in files(root):
        path.write_text(text, "utf-8", newline="\n")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
