"""What the suite starts for each of its client scenarios: ``client.py [--era legacy|modern] URL``.

The rule: this is an agent's side only. The suite's server is the one upstream of a config, `mcpzip serve`
stands before it on stdio, names untouched, and what the suite sees on the wire is mcpzip's doing. Which
scenario is on, and what it hands along, the suite says in the environment. Where mcpzip says that a person
has to sign in, one does (`sign_in`), and the same mcpzip goes on.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import sign_in

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
_MODERN = "2026-07-28"
_LEGACY = "2025-11-25"
_META = "io.modelcontextprotocol/"
_INFO = {"name": "suite-client", "version": "1.0.0"}
_CAPABILITIES: Json = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
_ROUNDS = 10
_LOGINS = 2
"""As often a person signs in for one piece of work; the third time something is wrong."""
_TOOL = "test-tool"
"""What every server of the suite has that wants a login."""


class Agent:
    """A client of mcpzip: requests out, answers in, and answers to what it is asked."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, modern: bool) -> None:
        self._process, self._modern = process, modern
        self._last = 0

    def introduce(self) -> None:
        """Open the conversation in its era."""
        if self._modern:
            self.request("server/discover")
            return
        self.request("initialize", protocolVersion=_LEGACY, capabilities=_CAPABILITIES, clientInfo=_INFO)
        self._say({"method": "notifications/initialized"})

    def request(self, method: str, **params: object) -> Json:
        """One result, whatever it asks. RuntimeError when it is an error."""
        self._last += 1
        if self._modern:
            params["_meta"] = {
                f"{_META}protocolVersion": _MODERN,
                f"{_META}clientInfo": _INFO,
                f"{_META}clientCapabilities": _CAPABILITIES,
            }
        self._say({"id": self._last, "method": method, "params": params})
        while True:
            message = self._hear()
            if "method" in message:
                if "id" in message:
                    answer = reply_to(message["method"], message.get("params", {}))
                    self._say({"id": message["id"], "result": answer})
            elif message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])

    def answered(self, method: str, result: Json, **params: object) -> Json:
        """The result after all the rounds that ``result`` begins."""
        for _ in range(_ROUNDS):
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests", {})
            replies = {key: reply_to(it["method"], it.get("params", {})) for key, it in asked.items()}
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            result = self.request(method, **params, inputResponses=replies, **state)
        raise RuntimeError(f"{method}: it never stops asking")

    def call(self, name: str, arguments: Mapping[str, object] | None = None) -> Json:
        """A call of a tool, to its end."""
        params = {"name": name, "arguments": dict(arguments or {})}
        return self.answered("tools/call", self.request("tools/call", **params), **params)

    def tools(self) -> list[Json]:
        """Every tool, over all pages."""
        page = self.request("tools/list")
        tools = list(page["tools"])
        while "nextCursor" in page:
            page = self.request("tools/list", cursor=page["nextCursor"])
            tools += page["tools"]
        return tools

    def _say(self, message: Json) -> None:
        assert self._process.stdin
        line = json.dumps({"jsonrpc": "2.0", **message})
        print(f"> {line}", file=sys.stderr)  # the suite keeps it with its report
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def _hear(self) -> Json:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("mcpzip ended")
        print(f"< {line.decode().strip()}", file=sys.stderr)
        return dict(json.loads(line))


def reply_to(method: str, params: Json) -> Json:
    """What this client answers to a question: to a form, the defaults of its fields."""
    if method == "elicitation/create":
        fields = params.get("requestedSchema", {}).get("properties", {})
        return {"action": "accept", "content": {key: _value(field) for key, field in fields.items()}}
    if method == "sampling/createMessage":
        text = {"type": "text", "text": "So be it."}
        return {"role": "assistant", "content": text, "model": "none", "stopReason": "endTurn"}
    return {"roots": [{"uri": "file:///srv", "name": "srv"}]} if method == "roots/list" else {}


def _value(schema: Json) -> object:
    """Something of the schema's type."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    values: dict[str, object] = {
        "string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None,
    }  # fmt: skip
    return values.get(schema.get("type", "object"), {})


# What each scenario wants its client to do.


def _call_everything(agent: Agent) -> None:
    for tool in agent.tools():
        fields = tool["inputSchema"].get("properties", {})
        agent.call(tool["name"], {key: _value(field) for key, field in fields.items()})


def _list_tools(agent: Agent) -> None:
    agent.tools()


def _read_everything(agent: Agent) -> None:
    _call_everything(agent)
    for resource in agent.request("resources/list")["resources"]:
        agent.request("resources/read", uri=resource["uri"])
    for prompt in agent.request("prompts/list")["prompts"]:
        agent.request("prompts/get", name=prompt["name"])


def _call_as_told(agent: Agent) -> None:
    agent.tools()
    for told in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        agent.call(told["name"], told["arguments"])


def _echo_the_schema(agent: Agent) -> None:
    [schema] = [it["inputSchema"] for it in agent.tools() if it["name"] == "json_schema_2020_12_tool"]
    agent.call("json_schema_echo", {"schema": schema})


def _keep_states_apart(agent: Agent) -> None:
    """A call of another tool between the rounds, then the answers."""
    agent.tools()
    first: Json = {"name": "test_mrtr_echo_state", "arguments": {}}
    asked = agent.request("tools/call", **first)
    agent.call("test_mrtr_unrelated")
    agent.answered("tools/call", asked, **first)
    agent.call("test_mrtr_no_state")
    agent.call("test_mrtr_no_result_type")


def _call_signed_in(log_in: Callable[[list[str]], None], agent: Agent) -> None:
    """Every tool; and when mcpzip says that a person has to sign in, all of it again once one has."""
    for logins in range(_LOGINS + 1):
        names = [tool["name"] for tool in agent.tools()] or [_TOOL]
        results = [agent.call(name) for name in names]
        failed = [result["content"][0]["text"] for result in results if result.get("isError")]
        if not failed:
            return
        told = sign_in.told_to_sign_in(failed[0])
        if told is None or logins == _LOGINS:
            raise RuntimeError(f"after {logins} logins: {failed[0]}")
        log_in(told)


_CONDUCT: Mapping[str, Callable[[Agent], None]] = {
    "initialize": _list_tools,
    "request-metadata": _list_tools,
    "json-schema-ref-no-deref": _list_tools,
    "http-standard-headers": _read_everything,
    "http-custom-headers": _call_as_told,
    "json-schema-2020-12-preservation": _echo_the_schema,
    "sep-2322-client-request-state": _keep_states_apart,
}
"""By scenario; in all the others the client calls every tool there is."""


def _auth(scenario: str, home: Path) -> Json:
    """How a config says to sign in, for those scenarios in which the server's operator gave us something."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    known = {key: context[key] for key in ("client_id", "client_secret") if key in context}
    if scenario == "auth/basic-cimd":
        return {"client_metadata_url": "https://conformance-test.local/client-metadata.json"}
    if scenario == "auth/client-credentials-basic":
        return {**known, "grant": "client_credentials"}
    if scenario == "auth/client-credentials-jwt":
        key = home / "key.pem"
        key.write_text(context["private_key_pem"], "utf-8")
        signed = {"private_key": str(key), "algorithm": context["signing_algorithm"]}
        return {**known, **signed, "grant": "client_credentials"}
    return known


def main() -> None:
    """Play the scenario that is on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["legacy", "modern"])
    parser.add_argument("url")
    told = parser.parse_args()
    era = told.era or ("modern" if os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] == _MODERN else "legacy")
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:  # a daemon may still be ending
        config = Path(home) / "config.json"
        server = {"url": told.url, "auth": _auth(scenario, Path(home))}
        # The suite waits for the end of our connections, so a daemon must not stay.
        written = {"mcpServers": {"suite": server}, "expose": "transparent", "daemon": {"idle_minutes": 0}}
        config.write_text(json.dumps(written), "utf-8")
        mcpzip = [sys.executable, "-m", "mcpzip.cli.main"]
        environment = {**os.environ, "HOME": home, "PYTHONPATH": str(ROOT)}
        conduct = _CONDUCT.get(scenario, _call_everything)
        if scenario.startswith("auth/"):
            conduct = partial(_call_signed_in, partial(sign_in.sign_in, mcpzip, environment))
        with subprocess.Popen(
            [*mcpzip, "serve", "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        ) as process:
            agent = Agent(process, modern=era == "modern")
            try:
                agent.introduce()
                conduct(agent)
            finally:
                assert process.stdin
                process.stdin.close()


if __name__ == "__main__":
    main()
