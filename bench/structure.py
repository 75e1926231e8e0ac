"""Measures the size of the code, and the function calls of one request.

    python -m bench.structure [--mcpzip PATH]

It counts lines, the files that import the SDK or its HTTP library, and the modules that `mcpzip serve` has
loaded; and, with Python's own profiling hook, the functions of mcpzip that one request calls, and how often.
It reports and never asserts.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.client import Client
from bench.http_client import HttpClient
from bench.lives import Piped, Restarted, mortal
from bench.subjects import environment, installed, interpreter_of
from bench.tables import table

OF_THE_SDK = re.compile(r"^\s*(?:import|from) (mcp|mcp_types|httpx2|httpcore2)\b", re.MULTILINE)
NEVER = 1 << 60
FEW, MANY = 20, 60
"""The counters are read after each number of calls; the difference is the work of the calls between."""

TRACER = """
import collections, json, os, sys, threading
calls, package, told = collections.Counter(), {package!r}, {told!r}

def note(frame, event, _):
    if event == "call":
        code = frame.f_code
        if code.co_filename.startswith(package) and not code.co_name.startswith("<"):
            calls[code.co_filename + ":" + code.co_qualname] += 1

def say(*_):
    loaded = [name for name in sys.modules if "." not in name or name.split(".")[0] == "mcpzip"]
    with open(told + ".new", "w") as file:
        json.dump({{"calls": calls, "modules": len(sys.modules), "ours": len(loaded)}}, file)
    os.replace(told + ".new", told)

import signal
signal.signal(signal.SIGUSR1, say)
threading.setprofile(note)
sys.setprofile(note)
sys.argv = ["mcpzip", *{arguments!r}]
from mcpzip.cli.main import main
main()
"""


class Traced:
    """`mcpzip serve` whose calls are counted."""

    def __init__(self, python: str, package: str, folder: Path, arguments: list[str]) -> None:
        self.told = folder / f"told-{len(list(folder.iterdir()))}"
        source = TRACER.format(package=package, told=str(self.told), arguments=arguments)
        self.argv = [python, "-I", "-c", source]

    def said(self, pid: int) -> dict[str, object]:
        """What it has counted so far."""
        self.told.unlink(missing_ok=True)
        os.kill(pid, 10)  # SIGUSR1
        while not self.told.exists():
            pass
        found = json.loads(self.told.read_text())
        assert isinstance(found, dict)
        return found


def counted(traced: Traced, pid: int, ask: "object") -> tuple[int, float]:
    """Functions of mcpzip that one request calls, and the number of calls."""
    assert callable(ask)
    for _ in range(FEW):
        ask()
    before = traced.said(pid)["calls"]
    for _ in range(MANY):
        ask()
    after = traced.said(pid)["calls"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    each = {name: (count - before.get(name, 0)) / MANY for name, count in after.items()}
    gone_through = {name: count for name, count in each.items() if count >= 0.9}
    return len(gone_through), sum(gone_through.values())


def sizes(package: Path) -> list[list[str]]:
    """Lines of Python, and files that import the SDK."""
    files = sorted(package.rglob("*.py"))
    texts = [file.read_text("utf-8") for file in files]
    importing = [file for file, text in zip(files, texts, strict=True) if OF_THE_SDK.search(text)]
    outside = [str(file.relative_to(package)) for file in importing if file.parent.name != "auth"]
    return [
        ["lines of Python in mcpzip/", f"{sum(text.count(chr(10)) for text in texts):,}"],
        ["files", f"{len(files):,}"],
        ["files that import the SDK or its HTTP library", f"{len(importing)}"],
        ["… of them outside auth/", ", ".join(outside) or "none"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    command = installed(parser.parse_args().mcpzip)
    python = interpreter_of(command)
    found = subprocess.run(
        [python, "-I", "-c", "import mcpzip; print(mcpzip.__path__[0])"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    package = found.stdout.strip()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        argv = mortal(python, NEVER, Path(os.devnull))
        upstream = Restarted(argv)
        stack.callback(upstream.stop)
        url = f"http://127.0.0.1:{upstream.port}/mcp"
        servers = {"piped": {"command": argv[0], "args": argv[1:]}, "web": {"type": "http", "url": url}}
        config = folder / "config.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        piped = Traced(python, package, folder, ["serve", "--config", str(config)])
        client = stack.enter_context(Client(piped.argv, environment()))
        client.initialize()
        talk = Piped(client)
        served = Traced(python, package, folder, ["serve", "--http", "127.0.0.1:0", "--config", str(config)])
        serving = subprocess.Popen(served.argv, stderr=subprocess.PIPE, text=True, env=environment())
        stack.callback(serving.wait)
        stack.callback(serving.terminate)
        assert serving.stderr
        line = serving.stderr.readline()
        web = HttpClient(line.split()[1], "legacy")
        web.begin()

        def calling(asked: HttpClient | Piped, tool: str) -> object:
            return lambda: asked.call("execute_tool", {"name": tool, "arguments": {"text": "x" * 100}})

        ways = (
            ("execute_tool, stdio → stdio", piped, client.pid, calling(talk, "piped__echo")),
            ("execute_tool, stdio → HTTP", piped, client.pid, calling(talk, "web__echo")),
            ("execute_tool, HTTP → stdio", served, serving.pid, calling(web, "piped__echo")),
            ("execute_tool, HTTP → HTTP", served, serving.pid, calling(web, "web__echo")),
            ("search_tools, stdio", piped, client.pid, lambda: talk.call("search_tools", {"query": "echo"})),
        )
        for way, traced, pid, ask in ways:
            functions, calls = counted(traced, pid, ask)
            rows.append([way, str(functions), f"{calls:.0f}"])
        modules = piped.said(client.pid)
    print(table(["what", "count"], sizes(Path(package))), end="\n\n")
    print(table(["one request", "functions of ours", "calls of them"], rows), end="\n\n")
    print(f"Modules that `mcpzip serve` has loaded then: {modules['modules']}.")


if __name__ == "__main__":
    main()
