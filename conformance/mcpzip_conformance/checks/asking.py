"""The questions of servers in the checks, and the clients' answers."""

from mcpzip.wire import join_object, quote
from mcpzip_conformance.scene import Server, server, tool

SAMPLE, ELICIT, LIST_ROOTS = "sampling/createMessage", "elicitation/create", "roots/list"

SAMPLING = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Summarize – naïvely: all is well."}},
        {"role": "assistant", "content": {"type": "text", "text": "All"}},
        {"role": "user", "content": {"type": "image", "data": "AAEC", "mimeType": "image/png"}},
    ],
    "modelPreferences": {
        "hints": [{"name": "small"}, {"name": "any"}],
        "costPriority": 0.5,
        "speedPriority": 1,
        "intelligencePriority": 0.25,
    },
    "systemPrompt": "Be brief.",
    "includeContext": "none",
    "temperature": 0.25,
    "maxTokens": 100,
    "stopSequences": ["\n\n"],
    "metadata": {"trace": [1, {"a": "b"}]},
}
SAMPLED = (
    b'{"role":"assistant","content":{"type":"text","text":"All is w\xc3\xa9ll."},"model":"m-1",'
    b'"stopReason":"endTurn"}'
)
FORM = {
    "mode": "form",
    "message": "A table – für wen?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Whose?", "minLength": 1},
            "people": {"type": "integer", "minimum": 1, "maximum": 12, "default": 2},
            "seat": {"type": "string", "enum": ["inside", "outside"]},
            "quiet": {"type": "boolean", "default": False},
        },
        "required": ["name", "people"],
    },
}
FILLED = b'{"action":"accept","content":{"name":"\xc3\x89va","people":4,"seat":"outside","quiet":false}}'
URL = {
    "mode": "url",
    "message": "Sign in, please.",
    "url": "https://example.com/sign-in?a=1&b=%20",
    "elicitationId": "e-1",
}
HELD = b'{"roots":[{"uri":"file:///home/a%20b","name":"a b"},{"uri":"file:///srv"}]}'
ACCEPTED, DECLINED, DROPPED = b'{"action":"accept"}', b'{"action":"decline"}', b'{"action":"cancel"}'


def asking(method: str, params: object = None, *, era: str = "legacy") -> Server:
    """A server with a tool that answers with what its client says to a question."""
    ask = {"method": method} | ({} if params is None else {"params": params})
    return server(era=era, tools=[tool("ask", None, ask=ask)])


def naming(*, era: str = "legacy", delay: float = 0.0) -> Server:
    """A server with a tool that asks for a name, saying in whose name it was called."""
    params = {
        "mode": "form",
        "message": "Who, {by}?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    ask = {"method": ELICIT, "params": params}
    asks = tool("name", None, text="{by}: {question.content.name}", fill=True, delay=delay, ask=ask)
    return server(era=era, tools=[asks])


def booking(era: str) -> Server:
    """A server with a tool that asks two things, the second when it has the answer to the first."""
    who = {"name": "who", "method": ELICIT, "params": FORM}
    when_params = {
        "mode": "form",
        "message": "When, {who.content.name}?",
        "requestedSchema": {"type": "object", "properties": {"day": {"type": "string"}}},
    }
    when = {"name": "when", "round": 2, "method": ELICIT, "params": when_params}
    said = "{who.content.name} ({who.content.people}) comes on {when.content.day}."
    return server(era=era, tools=[tool("book", None, text=said, fill=True, ask=[who, when])])


BOOKED = (FILLED, b'{"action":"accept","content":{"day":"Friday"}}')


def named(name: str) -> bytes:
    """A form with this name in it."""
    return join_object({"action": quote("accept"), "content": join_object({"name": quote(name)})})
