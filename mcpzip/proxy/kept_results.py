"""Large results of tools: kept here, and read on in parts by the meta-tools that run tools.

The rule: what a model can read at once is passed on untouched. Of a larger result the client is sent the
beginning and a handle, and all bytes of the result stay readable.
"""

import re
from collections.abc import Callable, Hashable
from itertools import islice
from typing import TYPE_CHECKING

from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, KeptNoMoreError
from mcpzip.model.limits import READ_AT_ONCE
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.statistics import Statistics
from mcpzip.proxy.tool_usage import is_success
from mcpzip.proxy.workers import run_in_worker

if TYPE_CHECKING:
    from mcpzip.config import Config
    from mcpzip.proxy.arguments import ToolCall
    from mcpzip.results.document import Document
    from mcpzip.results.store import Kept, KeptResults

URI = "mcpzip-result:"
"""The scheme of the URI of a kept result; its handle follows."""
USUAL = 10_000
"""Tokens of a part of a result that is shown, if the config keeps no results any more."""
_HANDLE = re.compile(r"r[0-9]{1,9}-[a-z2-7]{16}")
_HANDLE_BYTES = re.compile(_HANDLE.pattern.encode())
_DECLARED, _DECLARED_MOST = "anthropic/maxResultSizeChars", 500_000
"""The member of a tool's ``_meta`` with the characters of a result that are to be shown whole, and the most
that Claude Code grants.
"""


class Results:
    """The kept results of all clients, and which results are kept. What does the work is imported when there
    is a large result.
    """

    def __init__(self, current: CurrentConfig, statistics: Statistics) -> None:
        self._current, self._statistics = current, statistics
        self._store: KeptResults | None = None
        self._limit_of: Callable[[str], int | None] = lambda name: None
        self._limits_of: Config | None = None

    # --- a result that comes ---

    async def shown(
        self, entry: Entry, result: bytes, client: Client, runner: str, select: str = ""
    ) -> bytes:
        """What ``client`` is sent of ``result``, that of a call of ``entry``: itself, or its beginning if it
        is kept, or the part at the path ``select``, and the result is kept. runner: the name of the meta-tool
        that reads on.
        """
        limit = self._limit(entry.name)
        if select and is_success(result):
            return await self._selected(entry, result, client, runner, select, limit or USUAL)
        # A token has at least one byte. A person reads what a command (without an era) prints, so all of it.
        if limit is None or len(result) <= limit or client.era is None or is_input_required(result):
            return result

        def read() -> "Document | None":
            return _too_large(result, entry, limit)

        document = read() if len(result) <= READ_AT_ONCE else await run_in_worker(read, "result")
        if document is None:
            return result
        from mcpzip.results.document import shown, size_in_tokens
        from mcpzip.results.reply import reply

        tokens = await run_in_worker(lambda: size_in_tokens(shown(document)), "result")
        handle = self._keep(entry, result, client, tokens)
        if handle is None:
            return result
        uri = URI + handle
        sent = await run_in_worker(lambda: reply(result, document, tokens, handle, uri, runner), "result")
        self._statistics.count_kept(entry.name, tokens - sent.tokens)
        return sent.result

    async def _selected(
        self, entry: Entry, result: bytes, client: Client, runner: str, select: str, tokens: int
    ) -> bytes:
        """The part of ``result`` at ``select``; all of it, with a note, if there is no such part: the tool
        has run.
        """
        from mcpzip.results.reading import selected
        from mcpzip.results.reply import with_note

        try:
            part = await run_in_worker(lambda: selected(result, select, tokens), "result")
        except InvalidArgumentsError as error:
            shown = await self.shown(entry, result, client, runner)
            return with_note(shown, f"Nothing was selected, and this is the result: {error}")
        handle = self._keep(entry, result, client, part.tokens_of_all)
        if handle is None:
            return result
        self._statistics.count_kept(entry.name, part.tokens_of_all - part.tokens)
        how = f'All of it, about {part.tokens_of_all:,} tokens: {runner} with the name "{handle}".'
        return with_note(part.result, f"This is {select} of the result. {how}")

    def _keep(self, entry: Entry, result: bytes, client: Client, tokens: int) -> str | None:
        if self._store is None:
            from mcpzip.results.store import KeptResults

            self._store = KeptResults()
        return self._store.keep(_owner(client), entry.name, result, tokens)

    def _limit(self, name: str) -> int | None:
        """Tokens of a result of the tool ``name`` up to which it isn't kept; None if none is kept."""
        config = self._current.config
        if self._limits_of is not config:
            settings = config.results
            if settings.tools:
                from mcpzip.results.limits import limit_by_glob

                self._limit_of = limit_by_glob(settings)
            else:
                self._limit_of = lambda name: settings.keep
            self._limits_of = config
        return self._limit_of(name)

    # --- reading on ---

    async def read(self, call: "ToolCall", client: Client) -> bytes | None:
        """The part of a kept result that ``call`` names, as a `CallToolResult`; None if the name of the tool
        is no handle. Raises InvalidArgumentsError, KeptNoMoreError.
        """
        if _HANDLE.fullmatch(call.name) is None:
            return None
        kept = self._kept(client, call.name)
        if call.error:
            raise InvalidArgumentsError(call.error)
        arguments = members(call.arguments)
        if not arguments:
            self._statistics.count_kept(kept.tool, -kept.tokens, results=0)
            return kept.result
        tokens = self._limit(kept.tool) or self._current.config.results.keep or USUAL
        from mcpzip.results.reading import read_kept

        part = await run_in_worker(lambda: read_kept(kept.result, arguments, tokens), "result")
        self._statistics.count_kept(kept.tool, -part.tokens, results=0)
        return part.result

    async def fill(self, arguments: bytes, client: Client) -> tuple[bytes, tuple[str, ...]]:
        """``arguments`` (a JSON object) with the values of the kept results that it refers to, and a sentence
        about each. Raises InvalidArgumentsError, KeptNoMoreError.
        """
        if b'kept"' not in arguments:
            return arguments, ()
        from mcpzip.results.document import read_result
        from mcpzip.results.references import MOST, fill

        results: dict[str, Kept] = {}
        if self._store is not None:  # here, because it is not for threads
            handles = dict.fromkeys(match[0].decode() for match in _HANDLE_BYTES.finditer(arguments))
            for handle in islice(handles, MOST):
                if (kept := self._store.get(_owner(client), handle)) is not None:
                    results[handle] = kept
        read: dict[str, Document] = {}

        def find(handle: str) -> "tuple[str, Document]":
            if handle not in results:
                raise KeptNoMoreError(handle)
            if handle not in read:
                read[handle] = read_result(results[handle].result)
            return results[handle].tool, read[handle]

        return await run_in_worker(lambda: fill(arguments, find), "arguments")

    async def resource(self, client: Client, uri: str) -> bytes:
        """The result of `resources/read` for the ``uri`` of a kept result. Raises KeptNoMoreError."""
        kept = self._kept(client, uri.removeprefix(URI))
        from mcpzip.results.reply import contents

        return await run_in_worker(lambda: contents(kept.result, uri), "result")

    def _kept(self, client: Client, handle: str) -> "Kept":
        kept = None if self._store is None else self._store.get(_owner(client), handle)
        if kept is None:
            raise KeptNoMoreError(handle)
        return kept

    # --- the end ---

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        if self._store is not None and (owner := _owner(client)) is not None:
            self._store.remove_owner(owner)

    def close(self) -> None:
        """Forgets all."""
        if self._store is not None:
            self._store.close()


def _owner(client: Client) -> Hashable:
    """Whose a result is. A client of a single request can't be told from others."""
    return client if client.has_session else None


def _too_large(result: bytes, entry: Entry, limit: int) -> "Document | None":
    """``result``, if a model would read more than ``limit`` tokens of it, and more than its tool declares."""
    from mcpzip.results.document import exceeds, read_result
    from mcpzip.results.slices import UnreadableError

    try:
        document = read_result(result)
    except UnreadableError:
        return None  # it is passed on as it is
    if not exceeds(document, limit):
        return None
    declared = members(members(entry.raw).get("_meta")).get(_DECLARED, b"")
    characters = min(int(declared), _DECLARED_MOST) if declared.isdigit() and len(declared) < 10 else 0
    return None if max(len(document.text), len(document.value)) <= characters else document
