"""An upstream that does in a call what the call says, step by step; run by `bridging`.

    python bridging_server.py RECORD ERA

A call brings ``do``, a list of steps: ["ask", id, method, params], ["wait"] (until all is answered),
["progress", n], ["say", method, params], ["withdraw", id] (a question), ["error", code, message, data],
["early", result] (answers the call, and goes on), ["die"], ["hang"], ["await", file] (until it is there).
Its result is the answers, by the ids of the questions. In the modern era ``rounds`` is a list of
``inputRequests``; the state is odd, and looked at.
RECORD gets each line that comes.
"""

import json
import os
import sys
import time

ERA = "legacy"
STATE = 'état \U0001f600 / \\ " {}'
CAPABILITIES = {
    "tools": {},
    "prompts": {},
    "logging": {},
    "resources": {"subscribe": True, "listChanged": True},
}
TOOLS = [
    {"name": "run", "inputSchema": {"type": "object"}},
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]
PLANS = {
    "plan://ask": [["ask", "q", "roots/list"], ["wait"]],
    "plan://gone": [["error", -32002, "no such thing", {"uri": "plan://gone"}]],
    "plan://bare": [["error", -32002, "no such thing"]],
}
waiting = {}
calls = {}


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Call:
    def __init__(self, m):
        self.id, self.method, params = m["id"], m["method"], m["params"]
        self.token = params.get("_meta", {}).get("progressToken")
        arguments = params.get("arguments", {})
        do = arguments.get("do", [])
        self.steps = (
            PLANS[params["uri"]] if "uri" in params else json.loads(do) if isinstance(do, str) else do
        )
        self.steps, self.open, self.answers = list(self.steps), set(), {}
        self.answered = False
        calls[self.id] = self

    def go(self):
        while self.steps:
            kind, *said = self.steps[0]
            if kind == "hang" or (kind == "wait" and self.open):
                return
            self.steps.pop(0)
            if kind == "ask":
                self.open.add(said[0])
                waiting[said[0]] = self
                say(id=said[0], method=said[1], **({"params": said[2]} if len(said) > 2 else {}))
            elif kind == "progress":
                if self.token is not None:
                    say(
                        method="notifications/progress",
                        params={"progressToken": self.token, "progress": said[0]},
                    )
            elif kind == "say":
                say(method=said[0], params=said[1])
            elif kind == "withdraw":
                self.open.discard(said[0])
                say(method="notifications/cancelled", params={"requestId": said[0], "reason": "no longer"})
            elif kind == "error":
                data = {"data": said[2]} if len(said) > 2 else {}
                say(id=self.id, error={"code": said[0], "message": said[1], **data})
                return
            elif kind == "result":
                say(id=self.id, result=said[0])
                return
            elif kind == "early":
                say(id=self.id, result=said[0])
                self.answered = True
            elif kind == "die":
                os._exit(3)
            elif kind == "await":
                while not os.path.exists(said[0]):
                    time.sleep(0.002)
        if self.answered:
            return
        text = json.dumps(self.answers)
        if self.method == "prompts/get":
            result = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        elif self.method == "resources/read":
            result = {"contents": [{"uri": "plan://ask", "text": text}]}
        else:
            result = {"content": [{"type": "text", "text": text}]}
        say(id=self.id, result=result)


def begin(m):
    if ERA == "legacy":
        Call(m).go()
        return
    params = m["params"]
    arguments = params.get("arguments", {})
    rounds, state = arguments.get("rounds", []), params.get("requestState")
    if state is not None and not state.startswith(STATE):
        say(id=m["id"], error={"code": -32602, "message": "not my state"})
        return
    done = 0 if state is None else int(state[len(STATE) :])
    if arguments.get("die") == done:
        os._exit(3)
    if done < len(rounds):
        asked = {"resultType": "input_required", "inputRequests": rounds[done]}
        say(id=m["id"], result={**asked, "requestState": STATE + str(done + 1)})
    else:
        text = json.dumps(params.get("inputResponses"))
        say(id=m["id"], result={"resultType": "complete", "content": [{"type": "text", "text": text}]})


def main():
    global ERA
    path, ERA = sys.argv[1:]
    with open(path, "ab", buffering=0) as record:
        serve(record)


def serve(record):
    record.write(json.dumps({"started": os.getpid()}).encode() + b"\n")
    for line in sys.stdin.buffer:
        record.write(line)
        m = json.loads(line)
        method = m.get("method")
        if method is None:
            call = waiting.pop(m["id"], None)
            if call is not None:
                call.open.discard(m["id"])
                call.answers[m["id"]] = m.get("result", {"error": m.get("error")})
                call.go()
        elif method == "server/discover" and ERA == "modern":
            say(id=m["id"], result={"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES})
        elif method == "initialize" and ERA == "legacy":
            info = {"name": "up", "version": "1"}
            say(
                id=m["id"],
                result={"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info},
            )
        elif method == "tools/list":
            say(id=m["id"], result={"tools": TOOLS})
        elif method == "prompts/list":
            say(id=m["id"], result={"prompts": [{"name": "run"}]})
        elif method == "resources/list":
            say(id=m["id"], result={"resources": [{"uri": uri, "name": uri} for uri in PLANS]})
        elif method == "resources/templates/list":
            say(id=m["id"], result={"resourceTemplates": []})
        elif method in ("tools/call", "prompts/get", "resources/read"):
            begin(m)
        elif method == "resources/subscribe" and "bad" in m["params"]["uri"]:
            say(id=m["id"], error={"code": -32602, "message": "never heard of it"})
        elif method in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe", "ping"):
            say(id=m["id"], result={})
        elif method == "subscriptions/listen":
            wanted = m["params"]["notifications"]
            if any("bad" in uri for uri in wanted.get("resourceSubscriptions", [])):
                say(id=m["id"], error={"code": -32602, "message": "never heard of it"})
            else:
                meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": m["id"]}}
                say(
                    method="notifications/subscriptions/acknowledged",
                    params={"notifications": wanted, **meta},
                )
        elif "id" in m:
            say(id=m["id"], error={"code": -32601, "message": "no " + method})
        elif method == "notifications/roots/list_changed":
            say(id="roots-again", method="roots/list")


if __name__ == "__main__":
    main()
