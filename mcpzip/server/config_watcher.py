"""Watches the config file while mcpzip serves, and has its edits used.

The rule: a thread asks for the status of the file twice a second, because its disk may be slow, and for that
of the file of pins, which `mcpzip review` changes. The event loop runs only when one was written.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcpzip.config import Config
from mcpzip.config.watched_file import WatchedFile
from mcpzip.model.errors import ConfigError
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.tasks import cancel
from mcpzip.system.threads import in_thread

_STAYS = "The config as it was before stays in use"
INTERVAL = 0.5
"""Seconds between two looks at the file."""


class ConfigWatcher:
    """Watches ``file`` for ``proxy``."""

    def __init__(
        self,
        file: WatchedFile,
        proxy: Proxy,
        warn: Callable[[str], None],
        used: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        """warn: is told what has changed, and what is wrong. used: called with the content of the file when
        it is in use.
        """
        self._file, self._proxy, self._warn, self._used = file, proxy, warn, used
        self._warned = set(proxy.config.warnings)
        self._stopped = threading.Event()
        if file.problem is not None:
            self._note(f"{file.problem} Until there is a config, mcpzip runs without servers.")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches as long as the context lasts."""
        task = asyncio.create_task(self._run(), name="watch-config")
        task.add_done_callback(_report)
        try:
            yield
        finally:
            self._stopped.set()
            await cancel(task)

    async def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                edited = await in_thread(self._next_edit, "config")
            except ConfigError as error:
                is_other = error.file != self._file.path  # there is none at that of `self._file`
                stays = "Until then mcpzip runs without servers" if is_other else _STAYS
                self._note(f"{error} {stays}.")
            else:
                if edited is not None:
                    self._use(edited)
                if self._proxy.reviews.is_due:
                    self._proxy.reviews.take_up()

    def _next_edit(self) -> Config | None:
        """Waits for an edit. None when watching ends, or for a review. Raises ConfigError for an edit that
        can't be used.
        """
        while not self._stopped.wait(INTERVAL):
            if self._proxy.reviews.is_due:
                return None
            if (edited := self._file.changed()) is not None:
                return edited
        return None

    def _use(self, edited: Config) -> None:
        diff = self._proxy.reconfigure(edited)
        if diff.summary:
            self._warn(f"The config has changed: {diff.summary}.")
        for sentence in (*edited.warnings, *diff.notes):
            if sentence not in self._warned:
                self._warn(sentence)
        self._warned = {*edited.warnings, *diff.notes}
        if not diff.deferred:
            self._used(self._file.data)

    def _note(self, sentence: str) -> None:
        self._proxy.config_notes = (sentence,)
        self._warn(sentence)


def _report(task: "asyncio.Task[None]") -> None:
    """Has a defect of ours written to stderr: edits are no longer used after it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        details = {"message": "edits of the config are no longer used", "exception": error}
        task.get_loop().call_exception_handler(details)
