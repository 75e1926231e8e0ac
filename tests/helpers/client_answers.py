"""What the SDK's `Client` answers with: a model, a user, roots. It remembers what it was asked and told."""

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as t

PATIENCE = 30.0  # s; what takes this long is broken


class Person:
    """asked: the questions, in order; told: log messages; updated: the URIs of resources that changed;
    progress: its steps."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.told: list[tuple[str, Any]] = []
        self.updated: list[str] = []
        self.progress: list[tuple[float, float | None, str | None]] = []
        self._news = asyncio.Event()

    @property
    def callbacks(self) -> dict[str, Any]:
        """For `Client(...)`."""
        return {
            "sampling_callback": self._sample,
            "elicitation_callback": self._elicit,
            "list_roots_callback": self._roots,
            "logging_callback": self._log,
            "message_handler": self._message,
        }

    async def on_progress(self, done: float, total: float | None, message: str | None) -> None:
        """For `progress_callback`."""
        self.progress.append((done, total, message))
        self._news.set()

    async def until(self, look: Callable[[], bool]) -> None:
        """Waits for something it hears to make ``look`` true."""
        async with asyncio.timeout(PATIENCE):
            while not look():
                self._news.clear()
                await self._news.wait()

    async def _sample(self, context: object, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        self.asked.append(params.model_dump(mode="json", exclude_none=True, exclude={"meta", "task"}))
        content = t.TextContent(type="text", text="All is well.")
        return t.CreateMessageResult(role="assistant", model="m", content=content, stop_reason="endTurn")

    async def _elicit(self, context: object, params: Any) -> t.ElicitResult:
        self.asked.append(params.model_dump(mode="json", exclude_none=True, exclude={"meta", "task"}))
        if params.mode == "url":
            return t.ElicitResult(action="accept")
        return t.ElicitResult(action="accept", content={"name": "Ada", "people": 4, "check": True})

    async def _roots(self, context: object) -> t.ListRootsResult:
        self.asked.append("roots")
        return t.ListRootsResult(roots=[t.Root(uri="file:///here", name="here")])

    async def _log(self, params: t.LoggingMessageNotificationParams) -> None:
        self.told.append((params.level, params.data))
        self._news.set()

    async def _message(self, message: object) -> None:
        if isinstance(message, t.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))
            self._news.set()
