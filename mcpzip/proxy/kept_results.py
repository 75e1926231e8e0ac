"""Large results of tools: kept here, and read on in parts by the meta-tools that run tools.

The rule: what a model can read at once is passed on untouched. Of a larger result the client is sent the
beginning and a handle, and all bytes of the result stay readable.
"""

import asyncio
import os
import re
from base64 import b32encode
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, KeptNoMoreError, OverloadedError
from mcpzip.model.limits import KEPT_IN_MEMORY, KEPT_SECONDS, READ_AT_ONCE
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.statistics import Statistics
from mcpzip.proxy.tool_usage import is_success
from mcpzip.proxy.workers import run_in_worker
from mcpzip.system.threads import in_thread
from mcpzip.wire import quote

if TYPE_CHECKING:
    from mcpzip.config import Config
    from mcpzip.proxy.arguments import ToolCall
    from mcpzip.results.document import Document
    from mcpzip.results.store import Kept, KeptResults

URI = "mcpzip-result:"
"""The scheme of the URI of a kept result; its handle follows."""
USUAL = 10_000
"""Tokens of a part of a result that is shown, if the config keeps no results any more."""
_HANDLE = re.compile(r"r[0-9]{1,9}-[a-z2-7]{16,160}")
_VARIABLE = re.compile(r"r[0-9]{1,9}(_[a-z2-7]{16,160})?")
_HANDLE_BYTES = re.compile(_HANDLE.pattern.encode())
_DECLARED, _DECLARED_MOST = "anthropic/maxResultSizeChars", 500_000
"""The member of a tool's ``_meta`` with the characters of a result that are to be shown whole, and the most
that Claude Code grants.
"""


def is_handle(name: str) -> bool:
    """Whether ``name`` is the handle of a kept result, and no tool."""
    return _HANDLE.fullmatch(name) is not None


def may_refer(arguments: bytes) -> bool:
    """Whether ``arguments`` (JSON text) may refer to kept results."""
    return arguments.find(b'kept"') >= 0


class Results:
    """The kept results of all clients, and which results are kept. What does the work is imported when there
    is a large result.
    """

    def __init__(self, current: CurrentConfig, statistics: Statistics) -> None:
        self._current, self._statistics = current, statistics
        self.is_allowed: Callable[[Client, str], bool] = lambda client, tool: True
        """Whether a client may use a tool, by its name: after an edit of the config it may not any more."""
        self.new_suffix: Callable[[Client], str] = _random_suffix
        """What makes the part of a handle that nobody can guess, 16 to 160 characters of base32."""
        self.first_number = 1
        """Of the first handle: where there are replicas, another one in each."""
        self._store: KeptResults | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._limit_of: Callable[[str], int | None] = lambda name: None
        self._limits_of: Config | None = None

    # --- a result that comes ---

    def may_keep(self, entry: Entry, result: bytes, client: Client) -> bool:
        """Whether ``result``, that of a call of ``entry``, may be one that is kept: it is not short."""
        # A token has at least one byte. A person reads what a command (without an era) prints, so all of it.
        limit = self._limit(entry)
        return limit is not None and len(result) > limit and client.era is not None

    async def shown(
        self, entry: Entry, result: bytes, client: Client, runner: str, select: str = ""
    ) -> bytes:
        """What ``client`` is sent of ``result``, that of a call of ``entry``: itself, or its beginning if it
        is kept, or the part at the path ``select``, and the result is kept. runner: the name of the meta-tool
        that reads on.
        """
        try:
            if select and is_success(result):
                return await self._selected(entry, result, client, runner, select)
            return await self._beginning(entry, result, client, runner)
        except OverloadedError:
            return result  # the tool has run, so its result is not lost for want of a thread

    async def _beginning(self, entry: Entry, result: bytes, client: Client, runner: str) -> bytes:
        limit = self._limit(entry)
        if limit is None or not self.may_keep(entry, result, client) or is_input_required(result):
            return result

        def read() -> "tuple[Document, int] | None":
            return _too_large(result, entry, limit)

        found = read() if len(result) <= READ_AT_ONCE else await run_in_worker(read, "result")
        if found is None:
            return result
        document, tokens = found
        if (kept := await self._keep(entry, result, client, tokens)) is None:
            return result
        from mcpzip.results.reply import reply

        uri = URI + kept.handle
        sent = await run_in_worker(
            lambda: reply(result, document, tokens, kept.handle, uri, runner), "result"
        )
        if sent.tokens >= tokens and self._store is not None:
            self._store.remove(kept.handle)
            return result  # with a low limit: its beginning would be longer
        self._statistics.count_kept(entry.name, tokens - sent.tokens)
        return sent.result

    async def _selected(self, entry: Entry, result: bytes, client: Client, runner: str, select: str) -> bytes:
        """The part of ``result`` at ``select``; all of it, with a note, if there is no such part: the tool
        has run.
        """
        from mcpzip.results.reading import PATH, read_kept
        from mcpzip.results.reply import with_note

        arguments, tokens = {PATH: quote(select)}, self._limit(entry) or USUAL
        try:
            part = await run_in_worker(lambda: read_kept(result, arguments, tokens), "result")
        except InvalidArgumentsError as error:
            shown = await self._beginning(entry, result, client, runner)
            return with_note(shown, f"Nothing was selected, so this is the whole result. {error}")
        if (kept := await self._keep(entry, result, client, part.tokens_of_all)) is None:
            return result
        self._statistics.count_kept(entry.name, part.tokens_of_all - part.tokens)
        how = f'All of it, about {part.tokens_of_all:,} tokens: {runner} with the name "{kept.handle}".'
        return with_note(part.result, f"This is {select} of the result. {how}")

    async def _keep(self, entry: Entry, result: bytes, client: Client, tokens: int) -> "Kept | None":
        from mcpzip.results.store import KeptResults, StoredResult

        if self._store is None:
            self._store = KeptResults(self.first_number)
        if len(result) <= KEPT_IN_MEMORY:
            stored = StoredResult(result)
        else:
            stored = await in_thread(lambda: StoredResult(result), "result")
        kept = self._store.keep(client.owner, entry.name, stored, tokens, self.new_suffix(client))
        if self._expiry is None:
            self._expire()
        return kept

    def _expire(self) -> None:
        """Gives the memory of old results back, also if nobody calls any more."""
        self._expiry = None
        if self._store is not None:
            self._store.remove_old()
            if len(self._store):
                self._expiry = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._expire)

    def _limit(self, tool: Entry | str) -> int | None:
        """Tokens of a result of ``tool``, or of the tool called so, up to which it isn't kept; None if none
        is kept.
        """
        config = self._current.config
        settings = config.results
        if not settings.tools:
            return settings.keep
        if self._limits_of is not config:
            from mcpzip.results.threshold import limit_by_glob

            self._limit_of, self._limits_of = limit_by_glob(settings), config
        return self._limit_of(tool if isinstance(tool, str) else tool.name)

    # --- reading on ---

    async def read(self, call: "ToolCall", client: Client) -> bytes | None:
        """The part of a kept result that ``call`` names, as a `CallToolResult`; None if the name of the tool
        is no handle. Raises InvalidArgumentsError, KeptNoMoreError.
        """
        if not is_handle(call.name):
            return None
        kept = self._kept(client, call.name)
        if call.error:
            raise InvalidArgumentsError(call.error)
        arguments, result = members(call.arguments), await _read(kept)
        if not arguments:
            self._statistics.count_kept(kept.tool, -kept.tokens, results=0)
            return result
        tokens = self._limit(kept.tool) or self._current.config.results.keep or USUAL
        from mcpzip.results.reading import read_kept

        part = await run_in_worker(lambda: read_kept(result, arguments, tokens), "result")
        self._statistics.count_kept(kept.tool, -part.tokens, results=0)
        return part.result

    async def fill(self, arguments: bytes, client: Client) -> tuple[bytes, tuple[str, ...]]:
        """``arguments`` (a JSON object) with the values of the kept results that it refers to, and a sentence
        about each. Raises InvalidArgumentsError, KeptNoMoreError.
        """
        if not may_refer(arguments):
            return arguments, ()
        from mcpzip.results.document import read_result
        from mcpzip.results.references import MOST, fill

        tools: dict[str, str] = {}
        results: dict[str, bytes] = {}
        documents: dict[str, Document] = {}
        handles = dict.fromkeys(match[0].decode() for match in _HANDLE_BYTES.finditer(arguments))
        for handle in islice(handles, MOST):
            if (kept := self._known(client, handle)) is not None:
                tools[handle], results[handle] = kept.tool, await _read(kept)

        def find(handle: str) -> "tuple[str, Document]":
            if handle not in results:
                raise KeptNoMoreError(handle)
            if handle not in documents:
                documents[handle] = read_result(results[handle])
            return tools[handle], documents[handle]

        return await run_in_worker(lambda: fill(arguments, find), "arguments")

    # --- programs ---

    async def variables(self, client: Client, names: Iterable[str]) -> dict[str, str]:
        """The values (JSON texts) of the kept results of ``client`` that are among ``names``: ``r3`` or
        ``r3_…``, the handle as a Python name. A client of a single request needs the whole handle.
        """
        found: dict[str, str] = {}
        owner = client.owner
        for name in names:
            if self._store is None or _VARIABLE.fullmatch(name) is None:
                continue
            handle = name.replace("_", "-")
            kept = self._store.get(owner, handle) if "-" in handle else self._store.numbered(owner, handle)
            if kept is None or not self.is_allowed(client, kept.tool):
                continue
            result = await _read(kept)
            found[name] = await run_in_worker(partial(_program_value, result, kept.handle), "result")
        return found

    async def kept_for_program(self, entry: Entry, result: bytes, client: Client, tokens: int) -> str:
        """The handle under which ``result`` is kept, because a program can't compute with its images; "" if
        it is too large to be kept.
        """
        kept = await self._keep(entry, result, client, tokens)
        return "" if kept is None else kept.handle

    async def blocks(self, client: Client, value: str) -> list[bytes]:
        """The blocks of kept results for which there are markers in ``value``, that of a program."""
        from mcpzip.programs.values import block_of, markers

        found: list[bytes] = []
        if '"$kept"' not in value:
            return found
        for marker in await run_in_worker(lambda: markers(value), "result"):
            kept = self._known(client, marker.handle)
            if kept is not None:
                result = await _read(kept)
                block = await run_in_worker(partial(block_of, result, marker.number), "result")
                if block is not None:
                    found.append(block)
        return found

    def count_program(self, tokens_by_tool: Iterable[tuple[str, int]], shown: int) -> None:
        """Counts the results that a program read, so that the client need not. shown: the tokens of what the
        client reads instead.
        """
        for tool, tokens in tokens_by_tool:
            self._statistics.count_kept(tool, tokens)
        self._statistics.count_kept("mcpzip__run_code", -shown, results=0)

    async def resource(self, client: Client, uri: str) -> bytes:
        """The result of `resources/read` for the ``uri`` of a kept result. Raises KeptNoMoreError."""
        result = await _read(self._kept(client, uri.removeprefix(URI)))
        from mcpzip.results.reply import contents

        return await run_in_worker(lambda: contents(result, uri), "result")

    def _kept(self, client: Client, handle: str) -> "Kept":
        kept = self._known(client, handle)
        if kept is None:
            raise KeptNoMoreError(handle)
        return kept

    def _known(self, client: Client, handle: str) -> "Kept | None":
        """The result that ``client`` knows as ``handle``, and may still have."""
        kept = None if self._store is None else self._store.get(client.owner, handle)
        return kept if kept is not None and self.is_allowed(client, kept.tool) else None

    # --- the end ---

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        if self._store is not None and client.has_session:
            self._store.remove_owner(client)

    def close(self) -> None:
        """Forgets all."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._store is not None:
            self._store.close()


def _random_suffix(client: Client) -> str:
    return b32encode(os.urandom(10)).decode().lower()


def _program_value(result: bytes, handle: str) -> str:
    """The value of a kept ``result`` in a program, as JSON text."""
    from mcpzip.programs.values import value_of
    from mcpzip.results.document import read_result

    return value_of(read_result(result), handle).decode("utf-8", "surrogatepass")


async def _read(kept: "Kept") -> bytes:
    """Its bytes. Raises KeptNoMoreError if the file in which they are can't be read."""
    if kept.stored.size <= KEPT_IN_MEMORY:
        return kept.stored.read()
    try:
        return await in_thread(kept.stored.read, "result")
    except OSError as error:
        raise KeptNoMoreError(kept.handle) from error


def _too_large(result: bytes, entry: Entry, limit: int) -> "tuple[Document, int] | None":
    """``result`` and its tokens, if a model would read more than ``limit`` of it, and more than its tool
    declares.
    """
    from mcpzip.results.document import exceeds, read_result, shown, size_in_tokens
    from mcpzip.results.slices import UnreadableError

    try:
        document = read_result(result)
    except UnreadableError:
        return None  # it is passed on as it is
    if not exceeds(document, limit):
        return None
    declared = members(members(entry.raw).get("_meta")).get(_DECLARED, b"")
    characters = min(int(declared), _DECLARED_MOST) if declared.isdigit() and len(declared) < 10 else 0
    if max(len(document.text), len(document.value)) <= characters:
        return None
    return document, size_in_tokens(shown(document))
