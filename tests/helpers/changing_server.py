"""A server that offers what a file says at the moment: a test changes the file, and `poke` has it tell so."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_SCRIPT = """
import json, sys
SURFACE, CALLS = sys.argv[1:3]
LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
         "resources/templates/list": "resourceTemplates"}
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    method, params = m.get("method"), m.get("params") or {}
    surface = json.load(open(SURFACE))
    if "id" not in m:
        continue
    def answer(result): say(id=m["id"], result=result)
    if method == "initialize":
        answer({"protocolVersion": "2025-11-25", "serverInfo": {"version": "1", **surface["info"]},
                "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True},
                                 "resources": {"subscribe": True}, "completions": {}},
                **({"instructions": surface["instructions"]} if surface["instructions"] else {})})
    elif method in LISTS:
        items, at = surface[LISTS[method]], int(params.get("cursor") or 0)
        size = surface["page"] or len(items) or 1
        more = {"nextCursor": str(at + size)} if at + size < len(items) else {}
        answer({LISTS[method]: items[at:at + size], **more})
    elif method in ("server/discover", "ping"):
        say(id=m["id"], error={"code": -32601, "message": "no"})
    else:
        if method == "tools/call" and params["name"] == "poke":
            for what in ("tools", "prompts", "resources"):
                say(method=f"notifications/{what}/list_changed")
        else:
            with open(CALLS, "a") as calls:
                calls.write(json.dumps([method, params]) + "\\n")
        answer({"tools/call": {"content": [{"type": "text", "text": "done"}]},
                "prompts/get": {"messages": []},
                "resources/read": {"contents": [{"uri": params.get("uri"), "text": "read"}]},
                "completion/complete": {"completion": {"values": ["value"]}}}.get(method, {}))
"""


def tool(name: str, description: str = "Does a thing.", **more: Any) -> Json:
    """A tool that takes nothing, unless ``more`` says otherwise."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


@dataclass
class ChangingServer:
    """name: of the server. folder: of its files."""

    name: str
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "server.py").write_text(_SCRIPT)
        self.offers(tools=[tool("poke"), tool("pay_bill")])

    def offers(
        self,
        tools: list[Json] | None = None,
        prompts: list[Json] | None = None,
        resources: list[Json] | None = None,
        templates: list[Json] | None = None,
        instructions: str = "",
        info: Json | None = None,
        page: int = 0,
    ) -> None:
        """What it offers from now on. page: items of a page; 0 for all."""
        surface = {
            "tools": tools or [],
            "prompts": prompts or [],
            "resources": resources or [],
            "resourceTemplates": templates or [],
            "instructions": instructions,
            "info": info or {"name": self.name},
            "page": page,
        }
        draft = self.folder / "surface.draft"
        draft.write_text(json.dumps(surface))
        draft.replace(self.folder / "surface.json")

    @property
    def config(self) -> Json:
        """Its entry in ``mcpServers``."""
        files = [str(self.folder / name) for name in ("server.py", "surface.json", "calls")]
        return {"command": sys.executable, "args": files}

    @property
    def asked(self) -> list[tuple[str, Json]]:
        """The requests that reached it, but for handshakes, lists and `poke`: method and params."""
        calls = self.folder / "calls"
        if not calls.exists():
            return []
        return [(method, params) for method, params in map(json.loads, calls.read_text().splitlines())]
