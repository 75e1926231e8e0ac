"""Faults of what the client gets of a call."""

import json
from collections.abc import Callable, Mapping
from typing import cast

from mcpzip.wire import INTERNAL_ERROR, Request, RpcError
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import GoneError, RefusedError
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.search import text_result
from mcpzip_conformance.mutants.relay.session import Session
from mcpzip_conformance.mutants.relay.upstream import Link

Object = dict[str, object]


def spoils(change: Callable[[Object], object]) -> Parts:
    """A relay that applies this to each result of a call."""

    class Spoiling(Session):
        async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
            result = await super().sent_on(request, link, params)
            if request.method != "tools/call":
                return result
            return json.dumps(change(json.loads(result))).encode()

    return Parts(names=Spoiling)


def refuses(change: Callable[[RpcError], RpcError]) -> Parts:
    """A relay that applies this to each error of a server."""

    class SafeCommand(Session):
        async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
            try:
                return await super().sent_on(request, link, params)
            except GoneError:
                raise
            except RefusedError as refused:
                raise RefusedError(change(refused.error)) from refused

    return Parts(names=SafeCommand)


class HidesErrors(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        try:
            return await super().sent_on(request, link, params)
        except RefusedError as refused:
            if request.method != "tools/call":
                raise
            return text_result(refused.error.message, failed=True)


def _without(*keys: str) -> Callable[[Object], Object]:
    return lambda value: {key: item for key, item in value.items() if key not in keys}


def _only(*keys: str) -> Callable[[Object], Object]:
    return lambda value: {key: item for key, item in value.items() if key in keys}


def _blocks(change: Callable[[list[Object]], list[Object]]) -> Callable[[Object], Object]:
    return lambda result: {**result, "content": change(cast(list[Object], result.get("content", [])))}


def _each(change: Callable[[Object], Object]) -> Callable[[Object], Object]:
    return _blocks(lambda blocks: [change(block) for block in blocks])


def _cut(block: Object) -> Object:
    text = block.get("text")
    return {**block, "text": text[: 1 << 20]} if isinstance(text, str) else block


def _as_text(block: Object) -> Object:
    return block if block["type"] in ("text", "image") else {"type": "text", "text": json.dumps(block)}


def _bare(block: Object) -> Object:
    return {key: value for key, value in block.items() if key != "annotations"}


def _unwrapped(block: Object) -> Object:
    """An embedded resource as a text block."""
    held = block.get("resource")
    return {"type": "text", "text": str(held.get("text", ""))} if isinstance(held, dict) else block


def _as_doubles(value: object) -> object:
    """The result as a language with doubles only would write it."""

    def number(spelt: str) -> float | int:
        double = float(spelt)
        return int(double) if double.is_integer() and abs(double) < 1e21 else double

    return json.loads(json.dumps(value), parse_int=number, parse_float=number)


def _rounded(value: object) -> object:
    return json.loads(json.dumps(value), parse_float=lambda spelt: round(float(spelt), 6))


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _ascii(value: object) -> object:
    return json.loads(json.dumps(value, ensure_ascii=False).encode("ascii", "replace"))


_FIELDS = (
    *("content", "isError", "structuredContent", "_meta"),
    *("resultType", "inputRequests", "requestState"),
)
_BLOCK = _only("type", "text", "data", "mimeType", "resource", "uri", "name")

FAULTS: Mapping[str, Fault] = {
    "drops-is-error": Fault("drops isError", "fidelity.is-error", spoils(_without("isError"))),
    "drops-structured": Fault(
        "drops structuredContent",
        "fidelity.structured-content",
        spoils(_without("structuredContent")),
        also=("fidelity.numbers",),
    ),
    "drops-meta": Fault(
        "drops _meta of a result", "fidelity.meta", spoils(_without("_meta")), also=("fidelity.meta-modern",)
    ),
    "drops-unknown-fields": Fault(
        "keeps only the fields of a result that it knows",
        "fidelity.unknown-fields",
        spoils(_only(*_FIELDS)),
    ),
    "drops-unknown-content": Fault(
        "drops blocks of a kind that it doesn't know",
        "fidelity.unknown-content",
        spoils(_blocks(lambda blocks: [block for block in blocks if block["type"] != "hologram"])),
    ),
    "drops-block-fields": Fault(
        "keeps only the fields of a block that it needs",
        "fidelity.resource-link",
        spoils(_each(_BLOCK)),
        also=(
            "fidelity.image",
            "fidelity.meta",
            "fidelity.unknown-fields",
        ),
    ),
    "first-block-only": Fault(
        "keeps only the first block", "fidelity.several-blocks", spoils(_blocks(lambda blocks: blocks[:1]))
    ),
    "fills-empty": Fault(
        "puts a block where there is none",
        "fidelity.no-content",
        spoils(_blocks(lambda blocks: blocks or [{"type": "text", "text": ""}])),
    ),
    "writes-blocks-as-text": Fault(
        "knows text and images, and writes the rest as text",
        "fidelity.audio",
        spoils(_each(_as_text)),
        also=(
            "fidelity.embedded-resource",
            "fidelity.resource-link",
        ),
    ),
    "drops-annotations": Fault(
        "drops the annotations of blocks",
        "fidelity.image",
        spoils(_each(_bare)),
        also=(
            "fidelity.resource-link",
            "fidelity.unknown-fields",
        ),
    ),
    "unwraps": Fault(
        "makes what is embedded a text", "fidelity.embedded-resource", spoils(_each(_unwrapped))
    ),
    "truncates": Fault("cuts text at 1 MiB", "fidelity.large-result", spoils(_each(_cut))),
    "doubles": Fault("reads every number as a double", "fidelity.big-integers", spoils(_as_doubles)),
    "rounds": Fault("rounds fractions", "fidelity.numbers", spoils(_rounded)),
    "drops-result-nulls": Fault("drops nulls", "fidelity.structured-content", spoils(_without_nulls)),
    "sorts-keys": Fault(
        "sorts the keys of objects",
        "fidelity.key-order",
        spoils(lambda value: json.loads(json.dumps(value, sort_keys=True))),
    ),
    "respells": Fault("writes all JSON anew", "fidelity.number-spelling", spoils(lambda value: value)),
    "ascii": Fault(
        "writes ? for what is not ASCII",
        "fidelity.text",
        spoils(_ascii),
        also=(
            "conversation.mrtr",
            "fidelity.embedded-resource",
            "fidelity.structured-content",
        ),
    ),
    "hides-errors": Fault("makes a server's error a result", "fidelity.error", Parts(names=HidesErrors)),
    "recodes-errors": Fault(
        "answers every error with one code",
        "fidelity.error",
        refuses(lambda error: RpcError(INTERNAL_ERROR, error.message, error.data)),
    ),
    "drops-error-data": Fault(
        "drops the data of an error",
        "fidelity.error",
        refuses(lambda error: RpcError(error.code, error.message)),
    ),
}
