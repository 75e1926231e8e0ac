"""Faults of large results, and of their rest."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from mcpzip.wire import Request, join_object, quote, split_object, with_members, without_members
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.keeping import LIMIT, written
from mcpzip_conformance.mutants.relay.naming import items, members, text
from mcpzip_conformance.mutants.relay.programs import Coder
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Config, Servers, Write
from mcpzip_conformance.mutants.relay.upstream import Upstream


def _with_texts(result: bytes, words: str) -> bytes:
    """The result with one text block, ``words``, instead of its texts."""
    blocks = [bytes(block) for block in items(members(result).get("content", b"[]"))]
    head = join_object({"type": b'"text"', "text": quote(words)})
    others = [block for block in blocks if not written(block)]
    return with_members(result, {"content": b"[%b]" % b",".join([head, *others])})


def _words(result: bytes) -> str:
    blocks = items(members(result).get("content", b"[]"))
    return b"\n".join(written(bytes(block)) for block in blocks).decode("utf-8", "surrogatepass")


def _elements(raws: Sequence[msgspec.Raw]) -> bytes:
    return b"[%b]" % b",".join(map(bytes, raws))


class CutsSilently(Coder):
    """Cuts the text, and the handle is a secret."""

    def beginning(self, result: bytes, handle: str) -> bytes:
        return _with_texts(super().beginning(result, handle), _words(result)[:LIMIT])


class CutsJsonSilently(Coder):
    """Cuts JSON only, wherever the limit is, and the handle is a secret."""

    def beginning(self, result: bytes, handle: str) -> bytes:
        words = _words(result)
        if not words.startswith(("{", "[")):
            return super().beginning(result, handle)
        return _with_texts(super().beginning(result, handle), words[:LIMIT])


class CutsStructuredOnly(Coder):
    """The text stays whole; ``structuredContent`` is a note."""

    def beginning(self, result: bytes, handle: str) -> bytes:
        if "structuredContent" not in members(result):
            return super().beginning(result, handle)
        return with_members(result, {"structuredContent": b'{"note":"too long to be shown"}'})


class CutsStructuredSilently(Coder):
    """``structuredContent`` has the first elements of each list, and not a word more."""

    def beginning(self, result: bytes, handle: str) -> bytes:
        cut = super().beginning(result, handle)
        value = members(result).get("structuredContent")
        if value is None:
            return cut
        first = {
            key: b"[%b]" % b",".join(map(bytes, items(item)[:3])) for key, item in members(value).items()
        }
        return with_members(cut, {"structuredContent": join_object(first)})


class CallsAgain(Coder):
    """Keeps the call instead of the result."""

    calls: dict[str, tuple[Request, Upstream, bytes]]

    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        result = await super().run_tool(request, upstream, params)
        if self.kept:
            self.calls = {**getattr(self, "calls", {}), [*self.kept][-1]: (request, upstream, params)}
        return result

    async def rest(self, handle: str) -> bytes:
        request, upstream, params = self.calls[handle]
        return await self.sent_on(request, await upstream.link(), params)


class LosesImages(Coder):
    """Keeps the texts of a result."""

    async def rest(self, handle: str) -> bytes:
        whole = await super().rest(handle)
        blocks = [bytes(block) for block in items(members(whole).get("content", b"[]"))]
        kept = [block for block in blocks if text(members(block).get("type")) not in ("image", "audio")]
        return with_members(whole, {"content": b"[%b]" % b",".join(kept)})


class KeepsJsonOnly(Coder):
    """What is no JSON has no rest."""

    async def rest(self, handle: str) -> bytes:
        whole = await super().rest(handle)
        words = _words(whole)
        if words.startswith(("{", "[")) or "structuredContent" in members(whole):
            return whole
        return _with_texts(whole, words[:LIMIT])


class NormalizesLineEnds(Coder):
    async def rest(self, handle: str) -> bytes:
        return (await super().rest(handle)).replace(rb"\r\n", rb"\n")


class KeepsAMillion(Coder):
    """Keeps the first million bytes of each text."""

    async def rest(self, handle: str) -> bytes:
        whole = await super().rest(handle)
        words = _words(whole)
        return _with_texts(whole, words[:1_000_000]) if len(words) > 1_000_000 else whole


class HidesErrorInBeginning(Coder):
    def beginning(self, result: bytes, handle: str) -> bytes:
        return without_members(super().beginning(result, handle), ("isError",))


class BeginningIsText(Coder):
    """The first answer is a text, and nothing else."""

    def beginning(self, result: bytes, handle: str) -> bytes:
        fields = split_object(super().beginning(result, handle))
        first = bytes(items(fields["content"])[0])
        kept = {key: value for key, value in fields.items() if key in ("isError", "structuredContent")}
        return join_object({**kept, "content": b"[%b]" % first})


class KeepsForAll(Coder):
    """All clients have one store of results."""

    every: ClassVar[dict[str, bytes]] = {}

    def __init__(self, config: Config, write: Write, shared: Servers | None = None) -> None:
        super().__init__(config, write, shared)
        self.kept = self.every


class IgnoresDeclared(Coder):
    def declared(self, upstream: Upstream, tool: str) -> int:
        return 0


FAULTS: Mapping[str, Fault] = {
    "cuts-silently": Fault(
        f"cuts texts at {LIMIT} characters without a word",
        "results.cut-is-said",
        Parts(code=CutsSilently),
        "code",
        also=("fidelity.large-result", "results.binary", "results.byte-1000000", "results.not-json"),
    ),
    "cuts-json-silently": Fault(
        f"cuts JSON at {LIMIT} characters without a word",
        "results.cut-is-said",
        Parts(code=CutsJsonSilently),
        "code",
        also=("results.byte-1000000",),
    ),
    "cuts-structured-only": Fault(
        "cuts structuredContent, and sends the text whole",
        "results.cut-alike",
        Parts(code=CutsStructuredOnly),
        "code",
        also=("results.byte-1000000",),
    ),
    "cuts-structured-silently": Fault(
        "sends the first elements as structuredContent, without a word",
        "results.cut-is-said",
        Parts(code=CutsStructuredSilently),
        "code",
    ),
    "ignores-declared-size": Fault(
        "keeps results that their tools want to be sent whole",
        "results.declared-size",
        Parts(code=IgnoresDeclared),
        "code",
    ),
    "calls-again": Fault("calls the tool again for the rest", "results.once", Parts(code=CallsAgain), "code"),
    "loses-images": Fault("keeps no images and audio", "results.binary", Parts(code=LosesImages), "code"),
    "keeps-json-only": Fault(
        "has the rest of JSON only",
        "results.not-json",
        Parts(code=KeepsJsonOnly),
        "code",
        also=("fidelity.large-result", "results.binary", "results.byte-1000000", "results.once"),
    ),
    "normalizes-line-ends": Fault(
        "keeps texts with other line ends", "results.not-json", Parts(code=NormalizesLineEnds), "code"
    ),
    "keeps-a-million": Fault(
        "keeps the first million characters of texts",
        "results.byte-1000000",
        Parts(code=KeepsAMillion),
        "code",
        also=("fidelity.large-result",),
    ),
    "hides-error-in-beginning": Fault(
        "has isError in the whole result only",
        "results.is-error",
        Parts(code=HidesErrorInBeginning),
        "code",
    ),
    "keeps-for-all": Fault(
        "gives a client the rest of another's results", "shared.rest", Parts(code=KeepsForAll), "code-http"
    ),
    "beginning-is-text": Fault(
        "answers with the beginning of the text, and nothing else of the result",
        "results.beside",
        Parts(code=BeginningIsText),
        "code",
    ),
}
