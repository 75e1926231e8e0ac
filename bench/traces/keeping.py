"""What an agent is sent of a result that mcpzip keeps, and what it reads on: both by the product's own code
(`mcpzip.results`).
"""

import hashlib
from base64 import b32encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import msgspec

from bench.traces.parts import WINDOW, Range, parts
from bench.traces.quotes import Reading, Unescaped
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.results.document import exceeds, read_result, size_in_tokens, text_of
from mcpzip.results.reading import read_kept
from mcpzip.results.reply import reply
from mcpzip.results.slices import UnreadableError
from mcpzip.wire import quote, split_object

RUNNER = "execute_tool"
WHOLE = 0.6
"""The share of a result from which on an agent reads it whole, rather than in parts."""

Count = Callable[[str], int]
"""Counts the tokens of a text."""


@dataclass(frozen=True)
class Kept:
    """Tokens of a kept result in a conversation. beginning: of what the agent is sent. asked: of the calls by
    which it reads on; 0 if it doesn't. read: of what these give. is_whole: it reads all of it.
    """

    beginning: int
    asked: int = 0
    read: int = 0
    is_whole: bool = False


def text_shown(raw: bytes) -> str:
    """What clients show a model of a `CallToolResult`: texts as they are, links as JSON. Images are none."""
    try:
        blocks = read_result(raw).blocks
    except UnreadableError:
        return raw.decode("utf-8", "replace")
    texts = []
    for block in blocks:
        if (text := text_of(block)) is not None:
            texts.append(text)
        elif split_object(block).get("type") == b'"resource_link"':
            texts.append(block.decode("utf-8", "replace"))
    return "\n".join(texts)


class Candidate:
    """A result that may be kept, and what is computed of it once for all limits. tokens: of all of it. seen:
    what the agent is sent instead of it, if that is not its beginning.
    """

    def __init__(self, reading: Reading, count: Count, seen: str | None = None) -> None:
        self.reading, self._count = reading, count
        if seen is not None:
            self.beginning = seen
        self.tokens = count(text_shown(reading.result.raw))
        self._exceeds: dict[int, bool] = {}

    def exceeds(self, limit: int) -> bool:
        """Whether it is kept with this limit, as `mcpzip.proxy.kept_results` decides."""
        if limit not in self._exceeds:
            result, document = self.reading.result, self.reading.document
            self._exceeds[limit] = (
                not result.call.is_own
                and document is not None
                and len(result.raw) > limit
                and exceeds(document, limit)
            )
        return self._exceeds[limit]

    @cached_property
    def estimate(self) -> int:
        """Its tokens as mcpzip estimates them."""
        return size_in_tokens(self.reading.shown)

    @cached_property
    def beginning(self) -> str:
        """What the agent is sent of it if it is kept."""
        reading, document = self.reading, self.reading.document
        assert document is not None, "it can be read, since it is kept"
        handle = handle_of(reading.result.raw)
        uri = f"mcpzip-result:{handle}"
        sent = reply(reading.result.raw, document, self.estimate, handle, uri, RUNNER)
        return text_shown(sent.result)

    @cached_property
    def tokens_of_beginning(self) -> int:
        """Tokens of it."""
        return self._count(self.beginning)

    def asked(self, arguments: dict[str, str]) -> int:
        """Tokens of a call that reads it."""
        call = {"name": handle_of(self.reading.result.raw), "arguments": arguments}
        return self._count(RUNNER + msgspec.json.encode(call).decode())


class Keeper:
    """The results that are kept with a limit of ``limit`` tokens, and what agents read of them."""

    def __init__(self, limit: int, count: Count) -> None:
        self.limit, self._count = limit, count
        self.missed = 0
        """Results of which no parts showed what was to be read, so that all was."""

    def keeps(self, candidate: Candidate) -> bool:
        """Whether the result is kept."""
        return candidate.exceeds(self.limit)

    def unread(self, candidate: Candidate) -> Kept:
        """The agent reads nothing but the beginning."""
        return Kept(candidate.tokens_of_beginning)

    def whole(self, candidate: Candidate) -> Kept:
        """The agent reads the beginning, and then all of it."""
        return Kept(candidate.tokens_of_beginning, candidate.asked({}), candidate.tokens, True)

    def quoted(self, candidate: Candidate) -> Kept:
        """The agent reads the parts of which it quotes later, unless the beginning has them."""
        reading, document = candidate.reading, candidate.reading.document
        if document is None:
            return self.unread(candidate)
        is_json = bool(document.value)
        shown = _comparable(candidate.beginning, is_json)
        hidden = {span for span in set(reading.spans) if _bare(span, is_json) not in shown}
        quoted = zip(reading.quoted, reading.spans, strict=True)
        needed = [(offset, span) for offset, span in quoted if span in hidden]
        if not needed:
            return self.unread(candidate)
        if len(needed) > WHOLE * len(reading.shown):
            return self.whole(candidate)
        most = max(WINDOW, self.limit * 3 // 2)
        ranges = parts(document, reading.shown, [offset for offset, _ in needed], most)
        texts = self._read(reading, ranges)
        found = _comparable("\n".join(texts), is_json)
        if not all(_bare(span, is_json) in found for span in hidden):
            self.missed += 1
            return self.whole(candidate)
        read = sum(map(self._count, texts))
        if read > WHOLE * candidate.tokens:
            return self.whole(candidate)
        asked = sum(candidate.asked(each.arguments()) for each in ranges)
        return Kept(candidate.tokens_of_beginning, asked, read)

    def _read(self, reading: Reading, ranges: list[Range]) -> list[str]:
        """What mcpzip sends of these ranges."""
        texts = []
        for each in ranges:
            arguments = {key: quote(value) for key, value in each.arguments().items()}
            try:
                part = read_kept(reading.result.raw, arguments, self.limit)
            except InvalidArgumentsError as error:  # the agent is told so
                texts.append(str(error))
            else:
                texts.append(text_shown(part.result))
        return texts


def handle_of(raw: bytes) -> str:
    """A handle of the form that mcpzip gives, the same at every run."""
    return f"r1-{b32encode(hashlib.sha256(raw).digest())[:16].decode().lower()}"


def _comparable(text: str, is_json: bool) -> str:
    """``text`` with and without its escapes: mcpzip shows a text in JSON without them."""
    if not is_json:
        return text
    return f"{_squeezed(Unescaped(text, is_json).text, is_json)}\n{_squeezed(text, is_json)}"


def _squeezed(text: str, is_json: bool) -> str:
    """JSON without spaces: mcpzip writes none between elements."""
    return "".join(text.split()) if is_json else text


def _bare(span: str, is_json: bool) -> str:
    """``span`` without the punctuation of JSON at its ends: there may be other neighbours in a part."""
    return _squeezed(span, is_json).strip('",:[]{}') if is_json else span
