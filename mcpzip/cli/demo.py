"""`mcpzip demo`: an agent's conversation with three servers through mcpzip, for real, and what it costs.

Nothing here is staged: fake Slack, Todoist and GitHub servers run on one transport each, a `mcpzip serve`
process stands in front of them, and what is printed is what came over its pipe. Tokens are counted with
OpenAI's o200k_base where `bpe-openai` is installed (the ``dev`` extra has it); otherwise bytes are, and said
to be.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

import click

from mcpzip.catalog import snapshot
from mcpzip.cli import console
from mcpzip.config import snapshot_path
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.metatools import DESCRIBE, EXECUTE, REFRESH, SEARCH

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing a person asks for. picks, arguments: what a model picks and fills in, having read the
    signatures.
    """

    wish: str
    query: str
    picks: str
    arguments: Json
    describe: bool = False


SERVERS = {"slack": "stdio", "todoist": "http", "github": "sse"}
SCENES = (
    Scene(
        "Tell the team that the build is green again.",
        query="send a message to a Slack channel",
        picks="slack__send_message",
        arguments={"channel": "#engineering", "text": "The build is green again."},
    ),
    Scene(
        "Remind me to renew the domain.",
        query="create a task with a due date",
        picks="todoist__create_task",
        arguments={"content": "Renew the domain", "due_string": "every 20 Nov"},
    ),
    Scene(
        "File a bug about the flaky test.",
        query="open a new issue in a repository",
        picks="github__create_issue",
        arguments={"owner": "acme", "repo": "shop", "title": "test_checkout is flaky"},
        describe=True,
    ),
)


@click.command()
@click.option(
    "--svg", type=click.Path(dir_okay=False, writable=True), help="Also save what is printed as a picture."
)
def demo(svg: str | None) -> int:
    """Watch an agent work through mcpzip: three fake servers, one a transport, and the tokens saved.

    Needs no config, no key and no network; leaves nothing behind.
    """
    with console.pictured(svg, "mcpzip demo"), ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcpzip-demo-")))
        config = home / "config.json"
        with console.waiting("starting fake Slack (stdio), Todoist (Streamable HTTP) and GitHub (SSE) …"):
            servers = {
                name: stack.enter_context(_fake(name, transport)) for name, transport in SERVERS.items()
            }
        config.write_text(json.dumps({"mcpServers": servers}))
        with _agent(config) as agent:
            with console.waiting("waiting for them to list their tools …"):
                agent.begin()
                agent.quietly(EXECUTE, {"name": REFRESH})
            _play(agent)
        _bill(agent, _everything(config))
    return 0


class Agent:
    """An MCP client at its plainest, that remembers what its model has had to read."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._ids = process, count(1)
        self.standing: list[str] = []
        self.exchanges: list[tuple[str, str]] = []

    def ask(self, method: str, params: Json) -> Json:
        """One request, answered. Raises McpzipError when the proxy ends or answers with an error."""
        number = next(self._ids)
        self._tell({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            answer = cast(Json, json.loads(line))
            if answer.get("id") == number:
                if "error" in answer:
                    raise McpzipError(f"The demo failed: {json.dumps(answer['error'])}.")
                return cast(Json, answer["result"])
        raise McpzipError("The demo failed: mcpzip serve ended early.")

    def begin(self) -> None:
        """The handshake and the listing: what the model carries on every message from then on."""
        client = {"name": "demo", "version": "1"}
        hello = self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        )
        self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = cast(list[Json], self.ask("tools/list", {})["tools"])
        self.standing = [cast(str, hello["instructions"]), *map(_compact, tools)]

    def use(self, tool: str, arguments: Json) -> str:
        """Calls a meta-tool and shows the call and the text the model reads."""
        text = self.quietly(tool, arguments)
        self.exchanges.append((tool, _compact({"name": tool, "arguments": arguments}) + text))
        console.pair(f"→ {tool}", _compact(arguments))
        console.framed(text)
        return text

    def quietly(self, tool: str, arguments: Json) -> str:
        """The text of a result; what a tool reports as an error ends the demo."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(str(part.get("text", part)) for part in cast(list[Json], result["content"]))
        if result.get("isError"):
            raise McpzipError(f"The demo failed: {tool} answered {text!r}.")
        return text

    def _tell(self, message: Json) -> None:
        assert self._process.stdin
        self._process.stdin.write(_compact(message).encode() + b"\n")
        self._process.stdin.flush()


def _play(agent: Agent) -> None:
    for scene in SCENES:
        console.headed(f"“{scene.wish}”")
        found = agent.use(SEARCH, {"query": scene.query, "limit": 3})
        if scene.picks not in found:
            raise McpzipError(f"The demo failed: {scene.query!r} did not find {scene.picks}.")
        if scene.describe:
            agent.use(DESCRIBE, {"name": scene.picks})
        agent.use(EXECUTE, {"name": scene.picks, "arguments": scene.arguments})


def _everything(config: Path) -> list[str]:
    """Every tool as its server listed it: what the model would carry without mcpzip.

    Read from the snapshot that `mcpzip serve` left, which holds the very bytes.
    """
    path = snapshot_path(str(config))
    catalog, warnings = snapshot.load(path, str(config))
    if warnings or len(catalog.servers) < len(SERVERS):
        raise McpzipError(f"The demo failed: {warnings or catalog}.")
    return [entry.raw.decode() for entry in catalog.entries]


def _bill(agent: Agent, everything: list[str]) -> None:
    measure, unit = _meter()
    direct, standing = sum(map(measure, everything)), sum(map(measure, agent.standing))
    exchanges = [(tool, measure(text)) for tool, text in agent.exchanges]
    alone = [cost for tool, cost in exchanges if tool == EXECUTE]
    headings = ("", f">all {len(everything)} tools listed", ">through mcpzip", ">saved")
    sheet = console.Sheet(*headings, title=f"what the model reads, in {unit}", bold="saved")

    def row(what: str, without: int, through: int) -> None:
        sheet.row(what, f"{without:,}", f"{through:,}", f"{1 - through / without:.0%}")

    row("tools, on every message", direct, standing)
    row(
        f"the whole conversation above ({len(alone)} calls; {len(exchanges)} with searching)",
        _conversation(direct, alone),
        _conversation(standing, [cost for _, cost in exchanges]),
    )
    sheet.show()


def _conversation(standing: int, exchanges: list[int]) -> int:
    """All that a model reads when every turn sees the standing text and everything said before it."""
    total = context = standing
    for cost in exchanges:
        context += cost
        total += context
    return total


def _meter() -> tuple[Callable[[str], int], str]:
    try:
        import bpe_openai
    except ImportError:
        return lambda text: len(text.encode()), "bytes (install the extra 'dev' to count tokens)"
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text)), "tokens (o200k_base)"


@contextmanager
def _fake(name: str, transport: str) -> Iterator[Json]:
    """A fake server's entry in the config; over HTTP it runs until the context ends."""
    argv = [sys.executable, "-m", "mcpzip_fakes", name]
    if transport == "stdio":
        yield {"command": argv[0], "args": argv[1:]}
        return
    process = subprocess.Popen(
        [*argv, "--transport", transport, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        said = process.stdout.readline().split()
        if said[:1] != ["listening"]:
            raise McpzipError(f"The demo failed: the fake {name} server did not start.")
        yield {"type": transport, "url": said[1]}
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def _agent(config: Path) -> Iterator[Agent]:
    argv = [sys.executable, "-m", "mcpzip", "serve", "--config", str(config)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Agent(process)
    finally:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        process.stdout.close()
        process.wait()


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
