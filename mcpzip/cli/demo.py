"""`mcpzip demo`: a conversation of an agent with three servers through mcpzip, and its cost in tokens.

Fake Slack, Todoist and GitHub servers run on one transport each behind a `mcpzip serve` process, and the
printed texts are the ones that the process sends. Tokens are counted with OpenAI's o200k_base where
`bpe-openai` is installed (the ``dev`` extra has it); otherwise bytes are counted, and the output says so.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import cast

import click

from mcpzip.catalog import snapshot
from mcpzip.cli import console
from mcpzip.cli.parameters import examples
from mcpzip.config import snapshot_path
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.metatools import DESCRIBE, EXECUTE, REFRESH, SEARCH
from mcpzip.server.token_counter import as_model_reads, token_counter

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Task:
    """A person's request. query: the model's search. tool, arguments: the call that the model makes after
    reading the signatures.
    """

    request: str
    query: str
    tool: str
    arguments: Json
    describe: bool = False


SERVERS = {"slack": "stdio", "todoist": "http", "github": "sse"}
TASKS = (
    Task(
        "Tell the team that the build is green again.",
        query="send a message to a Slack channel",
        tool="slack__send_message",
        arguments={"channel": "#engineering", "text": "The build is green again."},
    ),
    Task(
        "Remind me to renew the domain.",
        query="create a task with a due date",
        tool="todoist__create_task",
        arguments={"content": "Renew the domain", "due_string": "every 20 Nov"},
    ),
    Task(
        "File a bug about the flaky test.",
        query="open a new issue in a repository",
        tool="github__create_issue",
        arguments={"owner": "acme", "repo": "shop", "title": "test_checkout is flaky"},
        describe=True,
    ),
)


@click.command(
    epilog=examples(
        "mcpzip demo",
        ("mcpzip demo --svg demo.svg", "a picture of it too"),
    )
)
@click.option(
    "--svg", type=click.Path(dir_okay=False, writable=True), help="Also save what is printed as a picture."
)
def demo(svg: str | None) -> int:
    """Watch an agent use three fake servers through mcpzip, and see the tokens saved.

    Needs no config, no key and no network; leaves nothing behind.
    """
    with console.save_svg(svg, "mcpzip demo"), ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcpzip-demo-")))
        config = home / "config.json"
        transports = _transports()
        with console.spinner("starting fake Slack, Todoist and GitHub servers …"):
            servers = {
                name: stack.enter_context(_fake(name, transport)) for name, transport in transports.items()
            }
        config.write_text(json.dumps({"mcpServers": servers}))
        with _agent(config) as agent:
            with console.spinner("waiting for them to list their tools …"):
                agent.initialize()
                agent.call(EXECUTE, {"name": REFRESH})
            _run_tasks(agent)
        _show_costs(agent, _all_tools(config))
        console.say("With your own servers: mcpzip init, or mcpzip migrate if a client has them already.")
    return 0


class Agent:
    """A minimal MCP client that records what its model reads.

    standing: texts in every message. exchanges: each tool called, with the texts of call and result.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._ids = process, count(1)
        self.standing: list[str] = []
        self.exchanges: list[tuple[str, str]] = []

    def ask(self, method: str, params: Json) -> Json:
        """Sends a request and returns the result. Raises McpzipError for an error or an exit."""
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            answer = cast(Json, json.loads(line))
            if answer.get("id") == number:
                if "error" in answer:
                    raise McpzipError(f"The demo failed: {json.dumps(answer['error'])}.")
                return cast(Json, answer["result"])
        raise McpzipError("The demo failed: mcpzip serve ended early.")

    def initialize(self) -> None:
        """Does the handshake and lists the tools: the texts in every later message."""
        client = {"name": "demo", "version": "1"}
        hello = self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = cast(list[Json], self.ask("tools/list", {})["tools"])
        self.standing = [cast(str, hello["instructions"]), *map(as_model_reads, tools)]

    def use(self, tool: str, arguments: Json) -> str:
        """Calls a meta-tool, and prints and records the call and the text that the model reads."""
        text = self.call(tool, arguments)
        self.exchanges.append((tool, _compact({"name": tool, "arguments": arguments}) + text))
        console.pair(f"→ {tool}", _compact(arguments))
        console.panel(text)
        return text

    def call(self, tool: str, arguments: Json) -> str:
        """Calls a tool and returns the text of its result. Raises McpzipError for an error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(str(part.get("text", part)) for part in cast(list[Json], result["content"]))
        if result.get("isError"):
            raise McpzipError(f"The demo failed: {tool} answered {text!r}.")
        return text

    def _send(self, message: Json) -> None:
        assert self._process.stdin
        self._process.stdin.write(_compact(message).encode() + b"\n")
        self._process.stdin.flush()


def _run_tasks(agent: Agent) -> None:
    for task in TASKS:
        console.rule(f"“{task.request}”")
        found = agent.use(SEARCH, {"query": task.query, "limit": 3})
        if task.tool not in found:
            raise McpzipError(f"The demo failed: {task.query!r} did not find {task.tool}.")
        if task.describe:
            agent.use(DESCRIBE, {"name": task.tool})
        agent.use(EXECUTE, {"name": task.tool, "arguments": task.arguments})


def _all_tools(config: Path) -> list[str]:
    """What the model would read of each tool without mcpzip, counted as in `mcpzip tokens`. The tools are
    read from the snapshot that `mcpzip serve` wrote.
    """
    path = snapshot_path(str(config))
    catalog, warnings = snapshot.load(path, str(config))
    if warnings or len(catalog.servers) < len(SERVERS):
        raise McpzipError(f"The demo failed: {warnings or catalog}.")
    return [as_model_reads(entry.definition() | {"name": entry.name}) for entry in catalog.entries]


def _show_costs(agent: Agent, tools: list[str]) -> None:
    measure, unit = token_counter()
    direct, standing = sum(map(measure, tools)), sum(map(measure, agent.standing))
    exchanges = [(tool, measure(text)) for tool, text in agent.exchanges]
    alone = [cost for tool, cost in exchanges if tool == EXECUTE]
    headings = ("", f">all {len(tools)} tools listed", ">through mcpzip", ">saved")
    table = console.Table(*headings, title=f"what the model reads, in {unit}", bold="saved")

    def row(what: str, without: int, through: int) -> None:
        table.row(what, f"{without:,}", f"{through:,}", f"{1 - through / without:.0%}")

    row("tools, on every message", direct, standing)
    row(
        f"the whole conversation above ({len(alone)} calls; {len(exchanges)} with searching)",
        _conversation(direct, alone),
        _conversation(standing, [cost for _, cost in exchanges]),
    )
    table.show()


def _conversation(standing: int, exchanges: list[int]) -> int:
    """The total that a model reads when each message repeats the standing and all earlier texts."""
    total = context = standing
    for cost in exchanges:
        context += cost
        total += context
    return total


def _transports() -> dict[str, str]:
    """The transport of each fake server. Over HTTP they need the package mcp (the extra ``fakes``): without
    it all of them use stdio.
    """
    try:
        installed = version("mcp")
    except PackageNotFoundError:
        installed = ""
    if installed.startswith("2.3."):
        return dict(SERVERS)
    console.note(
        "All three servers use stdio here. With mcpzip[fakes] installed, two of them use HTTP and SSE."
    )
    return dict.fromkeys(SERVERS, "stdio")


@contextmanager
def _fake(name: str, transport: str) -> Iterator[Json]:
    """The config entry of a fake server; over HTTP the server runs until the context ends."""
    argv = [sys.executable, "-m", "mcpzip_fakes", name]
    if transport == "stdio":
        yield {"command": argv[0], "args": argv[1:]}
        return
    process = subprocess.Popen(
        [*argv, "--transport", transport, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        words = process.stdout.readline().split()
        if words[:1] != ["listening"]:
            raise McpzipError(f"The demo failed: the fake {name} server did not start.")
        yield {"type": transport, "url": words[1]}
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def _agent(config: Path) -> Iterator[Agent]:
    argv = [sys.executable, "-m", "mcpzip", "serve", "--no-daemon", "--config", str(config)]
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
