"""What a start imports: as little as it needs, for each import costs every start its time.

The rule: each stage of a start has a list of the modules that it may import beyond those of the stages
before. Who adds one to a list measures what it costs (`python -X importtime`, `python -m bench.startup`).
"""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.driver import proxy_of
from mcpzip_fakes.launch import Fakes

COMMAND = {
    "mcpzip": "cli config model server system",
    "mcpzip.cli": "main",
    "mcpzip.config": "paths",
    "mcpzip.model": "limits",
    "mcpzip.server": "start",
    "mcpzip.system": "file_lock local_socket startup_io",
}
"""What every `mcpzip serve` imports: package -> modules."""

SHIM = {
    "mcpzip.server": "daemon session_record shim",
    "mcpzip.server.daemon": "connector link protocol",
    "mcpzip.system": "detached readiness",
}
"""In front of a daemon that runs."""

HANDSHAKE = {
    "mcpzip": "proxy",
    "mcpzip.model": "names protocol_versions",
    "mcpzip.proxy": "metatools",
    "mcpzip.server": "config_results early_handshake handshake_cache",
    "mcpzip.system": "bounded_read lean_imports state_files",
}
"""Without one: until the handshake is answered."""

SEARCH = {
    "mcpzip": "catalog pins search transport wire",
    "mcpzip.catalog": "catalog list_checks name_index parts snapshot tool_table visibility",
    "mcpzip.config": "auth node project reading schema search secrets server syntax variables watched_file",
    "mcpzip.model": "durations entry errors lazy_pattern offers quoting redaction sanitize schema_reader "
    "sections signature surface tokens type_names unescape",
    "mcpzip.pins": "at_start digests record store",
    "mcpzip.proxy": "admin_tools local_search search_reply search_request status token_budget tool_result "
    "tool_usage unanswered unset_variables",
    "mcpzip.search": "*",
    "mcpzip.server": "early_search prepared",
    "mcpzip.system": "command_line files formats mapped_files",
    "mcpzip.transport": "health",
    "mcpzip.wire": "canonical_json envelope eras error_codes errors events framing json_iter json_object "
    "peer surrogates",
}
"""Until the first search is answered."""

SERVE = {
    "mcpzip": "auth pins",
    "mcpzip.auth": "failure sign_ins",
    "mcpzip.config": "diff",
    "mcpzip.model": "error_line principal templates",
    "mcpzip.pins": "gate",
    "mcpzip.proxy": "argument_repair arguments bindings call call_record call_records call_states "
    "catalog_state client_binding "
    "client_capabilities client_roots current_config describe exchange exclusive_connections "
    "exposure first_calls first_listings guard handlers heard input_required kept_results list_renewal "
    "listing_origins log_levels lost_tools name_resolution "
    "notifier paged_list parking passthrough pipeline processes prompts_and_resources proxy refresh reviews "
    "server_prefix "
    "shared_binding sharing shown_tools stateful_servers statistics tool_caller tool_search uri_sources "
    "usage_store views workers",
    "mcpzip.search": "remote signals tiers vocabulary",
    "mcpzip.server": "batch client_requests config_watcher endpoint log run_file session stderr stdio "
    "stdio_output task_tracker telemetry",
    "mcpzip.system": "allocator backoff delayed_save direct_steps environment event_log hardening "
    "line_reader log_files log_writer orphans pipes private_files process process_activity reaper signals "
    "tasks threads write_queue",
    "mcpzip.transport": "abandoned_requests base circuit closing connection deadlines expiry handshake "
    "jsonrpc listing login_wait opening pagination pool requesters server_state server_states session_times "
    "signing start_queue stdio subscription",
    "mcpzip.wire": "client_info",
}
"""Until servers are called."""

DAEMON = {
    "mcpzip.server": "daemon",
    "mcpzip.server.daemon": "call_report client commands daemon main meaning protocol proxies report "
    "retirement",
    "mcpzip.system": "descriptors",
}
"""What the daemon imports beyond that."""

SMALL = (
    "atexit collections copyreg enum errno functools gc itertools json keyword math operator re reprlib "
    "select signal types"
)
"""Of the standard library: `json`, and what it imports."""
MSGSPEC = (
    "array bisect contextlib datetime decimal fnmatch hashlib heapq importlib math mmap msgspec numbers "
    "platform struct textwrap threading typing unicodedata uuid warnings zlib"
)
"""msgspec, what it imports, and a few more."""
ASYNCIO = (
    "ast asyncio base64 binascii concurrent contextvars dis fcntl hmac inspect linecache locale "
    "logging opcode random secrets select selectors signal socket string subprocess token tokenize traceback "
    "weakref"
)
"""asyncio and what it imports, but for `ssl`."""

IMPORTS = {
    "shim": "import mcpzip.cli.main, mcpzip.server.start, mcpzip.server.shim",
    "handshake": "import mcpzip.cli.main, mcpzip.server.start, mcpzip.server.early_handshake, "
    "mcpzip.server.config_results",
    "search": """
from mcpzip.server.early_handshake import import_msgspec
import mcpzip.cli.main, mcpzip.server.start, mcpzip.server.config_results
import_msgspec()
from mcpzip.server.prepared import prepare
from mcpzip.server.early_search import EarlySearch
early = EarlySearch.of(prepare(sys.argv[1]))
assert b"shop__pay" in early.answer(b'{"query":"pay the invoice"}', False)
""",
    "serve": """
from mcpzip.server.early_handshake import import_asyncio, import_msgspec
import mcpzip.cli.main, mcpzip.server.start, mcpzip.server.config_results
import_msgspec()
import mcpzip.server.prepared
import_asyncio()
import mcpzip.server.stdio
""",
    "daemon": """
from mcpzip.server.daemon.main import import_asyncio, import_msgspec
import mcpzip.cli.main
import_msgspec()
import_asyncio()
import mcpzip.server.daemon.daemon, mcpzip.server.log, mcpzip.server.prepared
""",
}
"""The imports of each stage, as the modules that it runs make them."""

STAGES = {
    "shim": ((COMMAND, SHIM), (SMALL,)),
    "handshake": ((COMMAND, HANDSHAKE), (SMALL,)),
    "search": ((COMMAND, HANDSHAKE, SEARCH), (SMALL, MSGSPEC)),
    "serve": ((COMMAND, HANDSHAKE, {**SEARCH, "mcpzip.search": ""}, SERVE), (SMALL, MSGSPEC, ASYNCIO)),
    "daemon": (
        (COMMAND, HANDSHAKE, {**SEARCH, "mcpzip.search": ""}, SERVE, DAEMON),
        (SMALL, MSGSPEC, ASYNCIO),
    ),
}


def imported(code: str, *arguments: str) -> set[str]:
    """What ``code`` imports."""
    root = str(Path(__file__).resolve().parents[3])
    program = (
        f"import sys; sys.path.insert(0, {root!r}); before = set(sys.modules)\n{code}\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(found.stdout.split())


def is_allowed(name: str, lists: tuple[dict[str, str], ...], libraries: tuple[str, ...]) -> bool:
    if name.split(".")[0] != "mcpzip":
        top = name.split(".")[0]
        return top.startswith("_") or top in " ".join(libraries).split()
    whole = any(
        modules == "*" and name.startswith(f"{package}.")
        for each in lists
        for package, modules in each.items()
    )
    package, _, module = name.rpartition(".")
    return whole or name == "mcpzip" or any(module in each.get(package, "").split() for each in lists)


@pytest.fixture
async def config(tmp_path: Path, fake_mcp: Fakes) -> str:
    """A config whose tools are on disk, indexed."""
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=["pay"])) as proxy:
        await proxy.wait_until_indexed()
    return str(tmp_path / "config.json")


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_of_a_start_imports_nothing_that_is_not_on_its_list(stage: str, config: str) -> None:
    lists, libraries = STAGES[stage]
    found = imported(IMPORTS[stage], config)
    assert sorted(name for name in found if not is_allowed(name, lists, libraries)) == []


LAST = {"shim": SHIM, "handshake": HANDSHAKE, "search": SEARCH, "serve": SERVE, "daemon": DAEMON}


@pytest.mark.parametrize(("stage", "last"), list(LAST.items()))
async def test_the_list_of_a_stage_has_nothing_that_it_does_not_import(
    stage: str, last: dict[str, str], config: str
) -> None:
    found = imported(IMPORTS[stage], config)
    listed = {f"{package}.{name}" for package, names in last.items() for name in names.split() if name != "*"}
    assert sorted(listed - found) == []


def test_importing_the_paths_imports_nothing_more() -> None:
    assert imported("import mcpzip.config.paths") == {"mcpzip", "mcpzip.config", "mcpzip.config.paths"}


_HTTPX = """
from mcpzip.cli.main import main
sys.argv[1:] = ["--version"]
try:
    main()
except SystemExit:
    pass
before = set(sys.modules)
import httpx
"""


def test_httpx_comes_without_the_libraries_of_its_own_command_line() -> None:
    found = imported(_HTTPX)
    assert "httpx" in found
    assert found & {"click", "rich", "pygments"} == set()
