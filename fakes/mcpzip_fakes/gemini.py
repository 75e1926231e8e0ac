"""A fake Gemini: ``POST /{v1,v1beta}/models/{model}:generateContent``.

    with FakeGemini(key="k", answers={"send a message": ["slack__send_message"]}) as gemini:
        ...  # GOOGLE_GEMINI_BASE_URL=gemini.url, GEMINI_API_KEY=k
        assert gemini.requests[0].body["generationConfig"]

The rule: requests, answers and errors have the shapes of the Gemini API (ai.google.dev/api/generate-content).
Without configured answers it chooses the tools whose lines share most words with the request.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import msgspec

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.endpoint import KINDS, Endpoint, EndpointFault, FaultLike, Reply, Seen

_PATH = re.compile(r"(?:/elsewhere)?/v\d\w*/models/([\w.-]+):generateContent")
_TOOL = re.compile(r"^(?:[-*]|\d+[.)])?\s*([\w.-]+__[\w.-]+)(?:\s|:|$)", re.MULTILINE)
_WORD = re.compile(r"[a-z0-9]+")
_PICKED = 5

STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Google's names of HTTP statuses (google.rpc.Code)."""


class FakeGemini(Endpoint):
    """key: the API key that it accepts; any if empty. answers: part of the prompt -> names in the answer.

    pick: computes the names from the whole prompt, instead of ``answers``. models: the existing ones; any if
    empty. text: the answer instead of names, JSON or not.
    """

    name: ClassVar[str] = "gemini"
    kinds: ClassVar[Mapping[str, str]] = {
        **KINDS,
        "empty": "answers without a candidate",
        "blocked": "says that the prompt was blocked (SAFETY)",
        "unsafe": "gives a candidate without a text (SAFETY)",
        "invented": "names only tools that it made up",
        "prose": "answers in words instead of JSON",
        "cut-off": "ends in the middle of its JSON (MAX_TOKENS)",
    }

    def __init__(
        self,
        *,
        key: str = "",
        answers: Mapping[str, Sequence[str]] | None = None,
        pick: Callable[[str], Sequence[str]] | None = None,
        models: Sequence[str] = (),
        text: str | None = None,
        faults: Iterable[FaultLike] = (),
        record: str | None = None,
        port: int = 0,
    ) -> None:
        self.key, self.answers, self.pick, self.text = key, answers or {}, pick, text
        self.models = tuple(models)
        super().__init__(faults, record=record, port=port)

    @property
    def prompts(self) -> list[str]:
        """The prompts so far, without the system instructions."""
        return [_prompt(seen.body) for seen in self.requests]

    def answer(self, seen: Seen, fault: EndpointFault | None) -> Reply:
        """See `Endpoint`."""
        found = _PATH.fullmatch(seen.path.partition("?")[0])
        if not found:
            return _error(404, "Requested entity was not found.")
        if self.key and seen.headers.get("x-goog-api-key") != self.key:
            message = "API key not valid. Please pass a valid API key."
            detail: JsonObject = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            }
            return _error(400, message, detail)
        if self.models and found[1] not in self.models:
            return _error(404, f"models/{found[1]} is not found for API version v1.")
        kind = fault.kind if fault else ""
        if kind == "empty":
            return Reply(200, {"usageMetadata": {}, "modelVersion": found[1]})
        if kind == "blocked":
            return Reply(200, {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": found[1]})
        if kind == "unsafe":
            return Reply(200, {"candidates": [{"finishReason": "SAFETY", "index": 0}]})
        text, ended = self._said(seen.body, kind), "STOP"
        if kind == "cut-off":
            text, ended = text[: len(text) // 2], "MAX_TOKENS"
        content = {"parts": [{"text": text}], "role": "model"}
        candidate = {"content": content, "finishReason": ended, "index": 0}
        usage = {"promptTokenCount": len(_prompt(seen.body)) // 4, "candidatesTokenCount": len(text) // 4}
        return Reply(200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": found[1]})

    def failure(self, seen: Seen, fault: EndpointFault) -> Reply:
        """See `Endpoint`: in Google's error shape."""
        detail: JsonObject | None = None
        if fault.retry_after is not None:
            delay = f"{fault.retry_after:g}s"
            detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
        return _error(fault.status, f"The request failed with {fault.status}.", detail)

    def _said(self, body: JsonObject, kind: str) -> str:
        if kind == "prose":
            return "I would use the tool that sends messages."
        if self.text is not None:
            return self.text
        names = ["invented__tool", "made__up"] if kind == "invented" else self._names(_prompt(body))
        return msgspec.json.encode({_key(body): names}).decode()

    def _names(self, prompt: str) -> list[str]:
        if self.pick is not None:
            return list(self.pick(prompt))
        tools = [match[0] for match in _TOOL.finditer(prompt)]
        request = _TOOL.sub("", prompt).casefold()
        for piece, names in self.answers.items():
            if piece.casefold() in request:
                return list(names)
        return _lexical(prompt) if tools else []


def _lexical(prompt: str) -> list[str]:
    """The tools whose lines share most words with the lines before the tools."""
    lines = prompt.splitlines()
    first = next(at for at, line in enumerate(lines) if _TOOL.match(line))
    wanted = set(_WORD.findall("\n".join(lines[:first]).lower()))
    scored = []
    for line in lines[first:]:
        tool = _TOOL.match(line)
        shared = wanted.intersection(_WORD.findall(line.lower().replace("_", " "))) if tool else ()
        if tool and shared:
            scored.append((-len(shared), tool[1]))
    return [name for _, name in sorted(scored)[:_PICKED]]


def _prompt(body: JsonObject) -> str:
    """The texts of the contents, a line each."""
    return "\n".join(
        str(part.get("text", ""))
        for content in _objects(body.get("contents"))
        for part in _objects(content.get("parts"))
    )


def _key(body: JsonObject) -> str:
    """The key of the names in the answer: the first array in the requested schema."""
    wanted = body.get("generationConfig")
    schema = (
        wanted.get("responseJsonSchema", wanted.get("responseSchema")) if isinstance(wanted, dict) else None
    )
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for key, value in properties.items() if isinstance(properties, dict) else ():
        if isinstance(value, dict) and str(value.get("type")).lower() == "array":
            return str(key)
    return "tools"


def _objects(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _error(code: int, message: str, detail: JsonObject | None = None) -> Reply:
    error: JsonObject = {"code": code, "message": message, "status": STATUSES.get(code, "UNKNOWN")}
    if detail is not None:
        error["details"] = [detail]
    return Reply(code, {"error": error})
