"""What a check plays: servers, and calls of their tools. Data only.

Scene([server(tools=[tool("fail", text="on fire", isError=True)])], [Call("fail")])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcpzip_fakes.launch import described
from mcpzip_fakes.scenario import Scenario

from mcpzip.wire import LATEST_LEGACY_VERSION

SHOP = "shop"
"""The default name of a server."""

_UNSEEN = frozenset(
    {"slow-start", "exit-at-once", "silence", "error", "strict-handshake", "schema-bomb", "endless-pages"}
)
"""Faults with which a server may list its tools late or never."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server behind the subject. env: its environment in the config; command: a command instead of the
    fake; over: the transport between the subject and the server ("": the subject's default)."""

    scenario: Scenario
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    over: str = ""

    @property
    def name(self) -> str:
        """Its name in the config."""
        return self.scenario.name

    @property
    def sound(self) -> bool:
        """Whether its tools are listed soon after the start."""
        return not self.command and not any(fault.kind in _UNSEEN for fault in self.scenario.faults)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. arguments, meta: JSON text."""

    tool: str
    arguments: bytes = b"{}"
    server: str = SHOP
    meta: bytes | None = None

    def __str__(self) -> str:
        return f"tools/call {self.server} {self.tool}"


@dataclass(frozen=True, slots=True)
class Scene:
    """Servers, and the calls made of them one after another over one connection in ``version``."""

    servers: Sequence[Server]
    calls: Sequence[Call]
    version: str = LATEST_LEGACY_VERSION


def tool(name: str, definition: Mapping[str, object] | None = None, **answer: object) -> dict[str, object]:
    """A tool: further members of its definition, and its answer by the keys of `mcpzip_fakes.Answer`
    (default: it echoes its arguments)."""
    return {"name": name, **(definition or {}), "result": answer or {"echo": True}}


def server(
    name: str = SHOP,
    *,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = (),
    over: str = "",
    **keys: object,
) -> Server:
    """A server; ``keys`` are those of a `mcpzip_fakes.scenario.Scenario` (``tools=``, ``faults=``, …)."""
    return Server(described(None, name=name, **keys), env or {}, command, over)
