"""The real servers, each started once, reached directly and through one `mcpzip serve`; a real browser."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest
from anyio.from_thread import start_blocking_portal
from helpers import inspector
from helpers.inspector_targets import Referee, refereed
from helpers.json_client import Json, connected, transport_of
from helpers.real_servers import NODE_MODULES, NPM_CI, RealWorld
from helpers.sync_client import Line, Real


@pytest.fixture(scope="session")
def mcpzip() -> str:
    """The installed command."""
    command = shutil.which("mcpzip", path=str(Path(sys.executable).parent))
    assert command, "mcpzip is not installed beside this Python: pip install '.[dev]'"
    return command


def _cannot_run(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """One Chromium for the file; without one the test is skipped, on CI it fails."""
    from helpers.chromium import MissingError, launched  # brings playwright

    with ExitStack() as stack:
        try:
            browser = stack.enter_context(launched())
        except MissingError as missing:
            _cannot_run(str(missing))
        yield browser


@pytest.fixture(scope="session")
def npm_packages() -> None:
    """The packages of package-lock.json are there; without them the test is skipped, on CI it fails."""
    if not (NODE_MODULES / "@modelcontextprotocol").is_dir():
        _cannot_run(f"the third-party servers are not installed: {NPM_CI}")


@pytest.fixture(scope="module")
def referee(mcpzip: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    """The Inspector in front of the installed command, over stdio and over HTTP with a token; without a Node
    that is new enough the test is skipped, on CI it fails."""
    if why := inspector.missing():
        _cannot_run(why)
    with refereed(mcpzip, tmp_path_factory.mktemp("inspector")) as referee:
        yield referee


@pytest.fixture(scope="session")
def real(npm_packages: None, mcpzip: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """Seven servers over three transports in one config, behind the daemon."""
    root = tmp_path_factory.mktemp("real")
    world = RealWorld(root)
    with ExitStack() as stack:
        errors = stack.enter_context((root / "stderr.log").open("w"))
        portal = stack.enter_context(start_blocking_portal())
        world.add_python_servers()
        stack.enter_context(world.npm_servers(root))
        config = root / "config.json"
        kept = {"mcpServers": world.entries, "daemon": {"idle_minutes": 0}}
        config.write_text(json.dumps(kept), "utf-8")

        def line(entry: Json, era: str | None = None, **kind: bool) -> Line:
            opened = connected(transport_of(entry, errors), era)
            return Line(portal, stack.enter_context(portal.wrap_async_context_manager(opened)), **kind)

        proxy = {"command": mcpzip, "args": ["serve", "--config", str(config)], "env": world.environment}
        lines = {era: line(proxy, era, through_mcpzip=True) for era in ("legacy", "modern")}
        newest = {name: line(entry) for name, entry in world.entries.items()}
        # mcpzip speaks to a server in its client's era, if the server can: so must who is compared with it.
        oldest = {
            name: line(world.entries[name], "legacy") if one.client.era == "modern" else one
            for name, one in newest.items()
        }
        direct = {"legacy": oldest, "modern": newest}
        for one in lines.values():
            one.say("execute_tool", {"name": "proxy_refresh", "timeout": 60})
        yield Real(world, direct, lines, config)
