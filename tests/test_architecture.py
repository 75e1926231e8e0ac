"""The floors of docs/architecture.md, and what each may not know.

The rule: the tables here are the architecture; a row that has to change is a decision, not a repair.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grimp
import pytest
from mcpzip_fakes.launch import FakeServer

ROOT = Path(__file__).parents[1]
PACKAGES = {"mcpzip": ROOT, "mcpzip_fakes": ROOT / "fakes", "mcpzip_conformance": ROOT / "conformance"}
"""By import name, the folder it is imported from."""

FLOORS = (
    ("mcpzip.model", "mcpzip.system"),
    ("mcpzip.wire", "mcpzip.checks", "mcpzip.store"),
    ("mcpzip.config", "mcpzip.http", "mcpzip.cassettes"),
    ("mcpzip.search", "mcpzip.clients", "mcpzip.policy", "mcpzip.results", "mcpzip.telemetry"),
    ("mcpzip.catalog", "mcpzip.programs"),
    ("mcpzip.pins",),
    ("mcpzip.auth",),
    ("mcpzip.transport", "mcpzip.identity"),
    ("mcpzip.proxy",),
    ("mcpzip.server",),
    ("mcpzip.doctor",),
    ("mcpzip.ui",),
    ("mcpzip.cli",),
)
"""From the ground up. A folder imports from the floors below it, and never from its neighbour."""

GUESTS = {
    "mcpzip_fakes": {"mcpzip_fakes", "mcpzip.cassettes", "mcpzip.config", "mcpzip.wire", "mcpzip.model"},
    "mcpzip_conformance": {
        "mcpzip_conformance",
        "mcpzip_fakes",
        "mcpzip.cassettes",
        "mcpzip.http",
        "mcpzip.wire",
        "mcpzip.model",
    },
}
"""The other packages, and all of ours that each may import."""

OUTSIDERS = {"bench", "tests"}
"""What nothing may import."""

PURE = ("mcpzip.model", "mcpzip.wire", "mcpzip.checks", "mcpzip.search", "mcpzip.catalog.catalog")
"""The pure core: no event loop, no files, no processes, no network."""
BUT = ("mcpzip.search.remote", "mcpzip.search.lexicon", "mcpzip.search.semantic.table")
"""What of it reaches outside all the same: tiers that run elsewhere, and readers of data that we ship."""
IMPURE = {
    "asyncio",
    "subprocess",
    "socket",
    "pathlib",
    "tempfile",
    "shutil",
    "mcp",
    "mcp_types",
    "httpx",
    "httpx2",
}

START_PATH = ("mcpzip.cli.main", "mcpzip.server.early_handshake")
"""What is loaded while a client waits for its first answer."""
HEAVY = {
    "asyncio",
    "msgspec",
    "mcp",
    "mcp_types",
    "pydantic",
    "anyio",
    "httpx",
    "httpx2",
    "click",
    "rich",
    "numpy",
}
OF_THE_SDK = {
    "mcp",
    "mcp_types",
    "pydantic",
    "anyio",
    "httpx",
    "httpx2",
    "starlette",
    "numpy",
    "click",
    "rich",
}

LONGEST_FILE = 500  # lines
NO_NAMES = {"utils", "helpers", "common", "misc", "util", "helper"}


@pytest.fixture(scope="session")
def graph() -> grimp.ImportGraph:
    """Who imports whom, imports for type checking and inside functions included."""
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def edges(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    """Every direct import, as (importer, imported)."""
    return [
        (importer, imported)
        for importer in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
    ]


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def floor(module: str) -> tuple[int, str] | None:
    """The height of the floor ``module`` is on, from 0, and its folder; None for the package itself."""
    for height, folders in enumerate(FLOORS):
        for folder in folders:
            if inside(module, folder):
                return height, folder
    return None


def test_every_folder_has_a_floor() -> None:
    folders = {f"mcpzip.{path.parent.name}" for path in (ROOT / "mcpzip").glob("*/__init__.py")}
    assert folders <= {folder for folders in FLOORS for folder in folders}


def test_imports_only_go_down(graph: grimp.ImportGraph) -> None:
    wrong = []
    for importer, imported in edges(graph):
        here, there = floor(importer), floor(imported)
        if here and there and here[1] != there[1] and here[0] <= there[0]:
            wrong.append(f"{importer} imports {imported}")
    assert wrong == []


@pytest.mark.parametrize("guest", GUESTS)
def test_guests_import_only_what_they_may(graph: grimp.ImportGraph, guest: str) -> None:
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges(graph)
        if inside(importer, guest)
        and imported.split(".")[0] in PACKAGES
        and not any(inside(imported, allowed) for allowed in GUESTS[guest])
    ]
    assert wrong == []


def test_mcpzip_knows_no_guests_and_nobody_knows_outsiders(graph: grimp.ImportGraph) -> None:
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges(graph)
        if imported.split(".")[0] in OUTSIDERS | ({*GUESTS} if inside(importer, "mcpzip") else set())
    ]
    assert wrong == []


def test_mcpzip_does_without_the_sdk(graph: grimp.ImportGraph) -> None:
    """It pinned one version of ``mcp``, of which other packages in an environment may want another."""
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges(graph)
        if inside(importer, "mcpzip") and imported.split(".")[0] in ("mcp", "mcp_types", "httpx2", "pydantic")
    ]
    assert wrong == []


def test_the_pure_core_does_no_io(graph: grimp.ImportGraph) -> None:
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges(graph)
        if any(inside(importer, package) for package in PURE)
        and not any(inside(importer, package) for package in BUT)
        and imported.split(".")[0] in IMPURE
    ]
    assert wrong == []


def test_there_are_no_circles(graph: grimp.ImportGraph) -> None:
    ours = {module for module in graph.modules if module.split(".")[0] in PACKAGES}
    left = {pair for pair in edges(graph) if ours.issuperset(pair)}
    while True:  # an import can't be part of a circle unless its end imports and its start is imported
        importers, imported = {pair[0] for pair in left}, {pair[1] for pair in left}
        round_about = {pair for pair in left if pair[1] in importers and pair[0] in imported}
        if round_about == left:
            break
        left = round_about
    assert sorted(left) == [], "these imports go round in a circle"


def sources() -> list[Path]:
    return [path for package, folder in PACKAGES.items() for path in sorted((folder / package).rglob("*.py"))]


OUT = ROOT / "mcpzip" / "cli" / "console.py"
"""The one way out of a command to whoever reads it."""
_WRITERS = {"print", "echo", "secho", "echo_via_pager", "style", "show"}
_STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def ways_around_the_console(path: Path) -> list[str]:
    """Where a module of the command line writes to somebody by itself."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names) if any(inside(one.name, "rich") for one in names):
                found.append(node.lineno)
            case ast.ImportFrom(module=str(module)) if inside(module, "rich"):
                found.append(node.lineno)
            case ast.Call(func=ast.Name(id="print")):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="click"), attr=name)) if name in _WRITERS:
                found.append(node.lineno)
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=name), attr=does)
            ):
                if name in _STREAMS and does != "fileno":
                    found.append(node.lineno)
            case _:
                pass
    return [f"{path.relative_to(ROOT)}:{line}" for line in found]


def test_commands_show_people_nothing_but_by_the_console() -> None:
    modules = [path for path in sorted((ROOT / "mcpzip" / "cli").glob("*.py")) if path != OUT]
    assert [place for path in modules for place in ways_around_the_console(path)] == []
    assert ways_around_the_console(OUT), "the test itself sees nothing"


def test_what_serves_complains_in_one_place() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "mcpzip").rglob("*.py"))
        if path != OUT and path.name != "stderr.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert [place.partition(":")[0] for place in wrong] == ["mcpzip/server/http/serve.py"]  # "listening URL"


def test_files_fit_in_one_reading() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in sources()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_names_say_what_is_inside() -> None:
    assert [
        str(path.relative_to(ROOT)) for path in sources() if NO_NAMES & {path.stem, path.parent.name}
    ] == []


@pytest.mark.parametrize("module", START_PATH)
def test_the_start_path_is_light(module: str) -> None:
    code = f"""
import sys
before = set(sys.modules)
import {module}
print(*{{name.split(".")[0] for name in set(sys.modules) - before}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) & HEAVY == set()


_SERVE = """
import sys
sys.argv[1:] = ["serve", "--config", sys.argv[1]]
from mcpzip.cli.main import main
try:
    main()
finally:
    loaded = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
    print(*loaded, file=sys.stderr)
"""


def test_serving_stdio_servers_never_loads_the_sdk(
    fake_mcp: Callable[..., FakeServer], tmp_path: Path
) -> None:
    server = fake_mcp("echo")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"echo": server.config}}), "utf-8")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [
        ("initialize", hello),
        ("tools/list", {}),
        ("tools/call", {"name": "search_tools", "arguments": {"query": "say hello to somebody"}}),
        ("tools/call", {"name": "describe_tool", "arguments": {"name": "echo__greet"}}),
        (
            "tools/call",
            {"name": "execute_tool", "arguments": {"name": "echo__greet", "arguments": {"name": "Ada"}}},
        ),
    ]
    for _ in range(2):  # the second time from the snapshot, and the early handshake answers first
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        with process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            for number, (method, params) in enumerate(asked, 1):
                request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                assert "result" in answer, answer
            assert "Hello, Ada!" in str(answer)
            process.stdin.close()
            loaded = set(process.stderr.read().decode().split())
        assert process.returncode == 0
        assert {"mcpzip", "msgspec"} <= loaded
        assert loaded & OF_THE_SDK == set()
