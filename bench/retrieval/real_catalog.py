"""A catalog of 3,300 tools of 70 real MCP servers from PyPI and npm, many of them alike, and requests.

    python -m bench.retrieval.real_catalog FOLDER [--only NAME …]

makes FOLDER for `bench.retrieval`: it installs each server of ``real_servers/servers.toml`` in an environment
of its own, asks it for its tools over stdio, and removes it again. It takes half an hour, and goes on where
it was interrupted. The servers are programs of other people, started with made-up keys and an empty home:
run it in a container. Their tools belong to their authors and are not part of this project.

``real_servers/requests.tsv``: a request, the tools that answer it and those that are acceptable, with commas
between names. Needs were written for tools drawn at random, without their words and in another language;
from these, somebody who didn't see the tools wrote the requests; what answers them was looked up in the whole
catalog. All of this was done before anything was searched for.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from bench.retrieval.dataset import Query, write_dataset
from mcpzip.model.entry import Entry

DATA = Path(__file__).parent / "real_servers"
INSTALL_S = 300
LIST_S = 60
MOST_PAGES = 100
_KEPT = ("PATH", "LANG", "SYSTEMROOT", "TEMP", "TMP", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_INSTALLERS = ("PIP_", "NPM_CONFIG_", "SSL_CERT_", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
"""What the names of variables begin with that tell pip and npm where registries are and whom to trust."""


@dataclass(frozen=True)
class Server:
    """A server: what is installed and how it is started. In argv, env and files ``{home}`` is its home.

    package: for pip, or for npm if ``npm``. files: texts by path below the home.
    """

    name: str
    npm: bool
    package: str
    needs: Sequence[str]
    argv: Sequence[str]
    env: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """right: the names of the tools that answer it. acceptable: of those that nearly do."""

    text: str
    right: tuple[str, ...]
    acceptable: tuple[str, ...]


def servers(text: str) -> list[Server]:
    """The servers of a file like ``servers.toml``. Raises ValueError for one without argv, or
    with no package or two."""
    found = []
    for name, its in tomllib.loads(text).items():
        if ("npm" in its) == ("pypi" in its) or not its.get("argv"):
            raise ValueError(f"{name}: give either npm or pypi, and argv")
        keys = (its.get("needs", ()), its["argv"], its.get("env", {}), its.get("files", {}))
        found.append(Server(name, "npm" in its, its.get("npm") or its["pypi"], *keys))
    return found


def requests(text: str) -> list[Request]:
    """The requests of a file like ``requests.tsv``. Raises ValueError naming a line that is not so."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        columns = line.split("\t")
        if len(columns) not in (2, 3) or not all(columns[:2]):
            raise ValueError(
                f"requests.tsv:{number}: write a request, its tools and acceptable ones, tabs between"
            )
        names = [tuple(name.strip() for name in column.split(",") if name.strip()) for column in columns[1:]]
        found.append(Request(columns[0], names[0], names[1] if len(names) > 1 else ()))
    return found


def listed(server: Server, folder: Path) -> list[dict[str, Any]]:
    """Its tools. folder: is made, for what is installed. Raises RuntimeError saying why there are none."""
    home = folder / "home"
    home.mkdir(parents=True)
    programs = _installed(server, folder)
    key = _private_key() if any("{key}" in text for text in server.files.values()) else ""
    for path, text in server.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text.replace("{key}", json.dumps(key)[1:-1]), encoding="utf-8")
    command, *arguments = [word.replace("{home}", str(home)) for word in server.argv]
    env = _environment(home)
    env |= {name: value.replace("{home}", str(home)) for name, value in server.env.items()}
    env["PATH"] = os.pathsep.join((str(programs), env.get("PATH", os.defpath)))
    started = shutil.which(command, path=str(programs))
    if started is None:
        raise RuntimeError(f"{server.package} has no program {command}")
    params = StdioServerParameters(command=started, args=arguments, env=env, cwd=home)
    try:
        return asyncio.run(_ask(params, folder / "stderr"))
    except Exception as error:
        said = (folder / "stderr").read_text(encoding="utf-8", errors="replace")[-400:]
        raise RuntimeError(f"{error!r}; it said: {said!r}") from error


async def _ask(params: StdioServerParameters, errors: Path) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    with errors.open("w", encoding="utf-8") as file:
        async with (
            asyncio.timeout(LIST_S),
            Client(stdio_client(params, errlog=file), mode="legacy") as client,
        ):
            page = await client.list_tools()
            for _ in range(MOST_PAGES):
                tools += [
                    tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools
                ]
                if not page.next_cursor:
                    break
                page = await client.list_tools(cursor=page.next_cursor)
    return tools


def _installed(server: Server, folder: Path) -> Path:
    """Install the server below ``folder``. Returns the folder of its programs."""
    place, env = folder / "installed", _environment(folder / "home")
    env |= {name: value for name, value in os.environ.items() if name.upper().startswith(_INSTALLERS)}
    if server.npm:
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error")
        npm = shutil.which("npm") or "npm"
        _run([npm, "install", "--prefix", str(place), *quiet, server.package], env)
        return place / "node_modules" / ".bin"
    _run([sys.executable, "-m", "venv", str(place)], env)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    _run([str(programs / "python"), "-m", "pip", "install", "--quiet", server.package, *server.needs], env)
    return programs


def _environment(home: Path) -> dict[str, str]:
    """Without the user's home and keys."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"HOME": str(home), "USERPROFILE": str(home)}


def _run(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Raises RuntimeError with what it said if it failed."""
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from error
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed: {(done.stdout + done.stderr)[-400:]!r}")


def _private_key() -> str:
    """A new RSA key in PEM, which some servers demand before they list anything."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return rsa.generate_private_key(65537, 2048).private_bytes(*form).decode()


def catalog(listings: Path) -> Iterator[Entry]:
    """The tools that were listed, with their servers' names."""
    for file in sorted(listings.glob("*.json")):
        for tool in json.loads(file.read_text(encoding="utf-8")):
            yield Entry.parse(file.stem, json.dumps(tool, ensure_ascii=False).encode())


def write(folder: Path, asked: Sequence[Request]) -> tuple[int, list[str]]:
    """Write the folder for `bench.retrieval`. Returns the number of tools, and the names that requests have
    and the catalog hasn't.
    """
    entries = list(catalog(folder / "listings"))
    queries = [
        Query(
            "",
            "plain",
            request.text,
            dict.fromkeys(request.acceptable, 1) | dict.fromkeys(request.right, 2),
            (frozenset(request.right),),
        )
        for request in asked
    ]
    write_dataset(folder, entries, queries)
    named = {name for query in queries for name in query.relevance}
    return len(entries), sorted(named - {entry.name for entry in entries})


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.real_catalog",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these servers")
    options = parser.parse_args()
    wanted = servers((DATA / "servers.toml").read_text(encoding="utf-8"))
    listings = options.folder / "listings"
    listings.mkdir(parents=True, exist_ok=True)
    for server in wanted:
        file = listings / f"{server.name}.json"
        if file.exists() or (options.only and server.name not in options.only):
            continue
        with tempfile.TemporaryDirectory(prefix="mcpzip-catalog-", ignore_cleanup_errors=True) as made:
            try:
                tools = listed(server, Path(made))
            except RuntimeError as error:
                print(f"{server.name}: {error}", file=sys.stderr, flush=True)
                continue
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(tools, ensure_ascii=False), encoding="utf-8")
        partial.replace(file)
        print(f"{server.name}: {len(tools)} tools", flush=True)
    count, missing = write(options.folder, requests((DATA / "requests.tsv").read_text(encoding="utf-8")))
    print(f"{count} tools in {options.folder}; requests name {len(missing)} that none of them is")
    for name in missing if not options.only else ():
        print(f"  {name}")


if __name__ == "__main__":
    main()
