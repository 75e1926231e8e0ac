"""What is measured beside what, and how each subject is started.

The rule: a proxy is what its file of the conformance runner says (docs/conformance-subjects.md), so that it
is installed, configured and called as there. All subjects stand between pipes: a client on stdio, servers on
stdio.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
from mcpzip_conformance.declaration import Start, Tools
from mcpzip_conformance.installation import bin_folder
from mcpzip_conformance.route import Route
from mcpzip_conformance.subject import Subject as Declared
from mcpzip_conformance.subject import load_all

from bench.subjects import HERE
from bench.suite.figures import DIRECT, Shown

RUNNING, MCPZIP, ALONE = "mcpzip-running", "mcpzip", "mcpzip-no-daemon"
RELAY, SDK, BARE = "relay", "sdk", "python"
_PEERS = ("dmcp", "mcp-compressor:stdio", "lazy-mcp:stdio", "fastmcp:search", "1mcp:lazy", "ncp")
_LISTS: Mapping[str, tuple[str, object]] = {
    "dmcp": ("get_dynamic_tools", {"group": "{server}"}),
    "mcp-compressor": ("{server}_get_tool_schema", {"tool_name": "{tool}"}),
    "lazy-mcp": ("list_commands", {"servers": ["{server}"]}),
    "1mcp": ("tool_list", {"server": "{server}"}),
}
"""How an agent finds a tool through a peer that has no search: its meta-tool that shows one server's tools,
or one of them, and the arguments."""
_BROWSED = "where others search, it shows one server's tools, or one of them"
_ELSEWHERE = (
    "mcp-proxy is not measured: it stands between stdio and HTTP, not between pipes.",
    "fastmcp-gateway is not measured: its client and its servers are on HTTP.",
    "MCPProxy is not measured: its client is on HTTP.",
)
"""Peers that don't stand between pipes."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Something that is measured. declared: how it is started and called; None for what has no servers, which
    ``argv`` starts; lists: as in `_LISTS`, if it has no search."""

    shown: Shown
    declared: Declared | None = None
    argv: tuple[str, ...] = ()
    lists: tuple[str, object] | None = None

    @property
    def key(self) -> str:
        return self.shown.key

    @property
    def finds(self) -> bool:
        """Whether a tool can be found through it."""
        return bool(self.lists or (self.declared and self.declared.tools.search))

    @property
    def daemon(self) -> bool:
        """Whether it starts mcpzip's daemon."""
        return self.key in (RUNNING, MCPZIP)

    def find(self, server: str, tool: str, *, alone: bool) -> object:
        """The params of the `tools/call` that finds ``tool``. alone: it has one server only."""
        assert self.declared is not None
        if self.lists is None:
            return json.loads(Route(self.declared, alone).search(tool.replace("_", " ")))
        name, arguments = self.lists
        if alone:
            name = name.replace("{server}_", "")
        text = json.dumps({"name": name, "arguments": arguments})
        return json.loads(text.replace("{server}", server).replace("{tool}", tool))

    def call(self, server: str, tool: str, arguments: Mapping[str, object], *, alone: bool) -> object:
        """The params of the `tools/call` that runs ``tool``."""
        assert self.declared is not None
        return json.loads(Route(self.declared, alone).call(server, tool, json.dumps(arguments).encode()))


def every(mcpzip: str, python: str, version: str) -> tuple[list[Subject], list[str]]:
    """All subjects that are installed, and a sentence for each peer that isn't. mcpzip: its command; python:
    the interpreter of the subjects that are scripts."""
    found = [
        *_mcpzips(mcpzip, version),
        _transparent(DIRECT, "no proxy", "The client's connection to one upstream.", ()),
        _transparent(
            RELAY,
            "bare relay",
            "A script that copies bytes between the client and one upstream: what one more process costs.",
            (python, "-I", "-S", str(HERE / "relay.py")),
        ),
        Subject(
            Shown(SDK, "empty server on the SDK", "", "A server without tools on the MCP SDK.", peer=False),
            argv=(sys.executable, str(HERE / "sdk_server.py")),
        ),
        Subject(
            Shown(BARE, "`python -c pass`", "", "A bare interpreter, from spawn to its end.", peer=False),
            argv=(python, "-c", "pass"),
        ),
    ]
    skipped = list(_ELSEWHERE)
    for name in _PEERS:
        peer = _peer(name)
        if isinstance(peer, str):
            skipped.append(peer)
        else:
            found.append(peer)
    return found, skipped


def _mcpzips(command: str, version: str) -> Iterable[Subject]:
    with_daemon, alone = (load_all(f"mcpzip:{variant}")[0] for variant in ("meta-daemon", "meta"))
    start = (command, "serve", "--config", "{config}")
    for key, title, about, declared, more in (
        (RUNNING, "mcpzip, its daemon runs", "`mcpzip serve` beside another one.", with_daemon, ()),
        (MCPZIP, "mcpzip", "`mcpzip serve`, which starts its daemon.", with_daemon, ()),
        (ALONE, "mcpzip `--no-daemon`", "`mcpzip serve` in one process.", alone, ("--no-daemon",)),
    ):
        own = msgspec.structs.replace(declared, start=Start(command=(*start, *more)))
        yield Subject(Shown(key, title, version, about, peer=False), own)


def _transparent(key: str, title: str, about: str, command: tuple[str, ...]) -> Subject:
    """A subject whose only server's command line follows its own."""
    start = Start(command=(*command, "{upstream}"))
    declared = Declared(id=key, title=title, start=start, tools=Tools(names="{tool}"))
    return Subject(Shown(key, title, "", about, peer=False), declared)


def _peer(name: str) -> Subject | str:
    """The peer, or why it can't be measured."""
    [declared] = load_all(name)
    program, title = declared.start.command[0], declared.title.removesuffix(f" {name.partition(':')[2]}")
    if declared.install is not None:
        if bin_folder(declared.family, declared.install) is None:
            return f"{title} is skipped: mcpzip-conformance install {declared.family} installs it."
    elif shutil.which(program) is None:
        return f"{title} is skipped: its command {program} isn't on the PATH ({declared.homepage})."
    lists = _LISTS.get(declared.family)
    about = f"{declared.about} Without a search: {_BROWSED}." if lists else declared.about
    shown = Shown(declared.family, declared.title.removesuffix(" stdio"), declared.version, about, peer=True)
    return Subject(shown, declared, lists=lists)
