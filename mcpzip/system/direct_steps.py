"""Steps of tasks that are taken at once, and not in the next turn of the event loop.

A turn takes as long as a tenth of a whole call, and a call would need three that wait for nothing: to begin
its task, to go on with it when the server has answered, and to tell that it has ended.

The rule: a step is taken at once only where no task runs, because a task must not run within another.
Otherwise it is taken in the next turn, as asyncio does.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def begin_at_once(work: Coroutine[Any, Any, T], context: Context) -> "tuple[asyncio.Task[T], bool]":
    """A task in ``context`` that does ``work``, and whether its first step, up to where it has to wait, has
    been taken. So it may be done.
    """
    loop = asyncio.get_running_loop()
    if asyncio.current_task() is not None:
        return loop.create_task(work, context=context), False
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, context=context, eager_start=True), True
    task = asyncio.Task(work, loop=loop, context=context)
    # Python 3.11, which changes no more, has no other way. The step is the last thing that was scheduled.
    ready = getattr(loop, "_ready", None)
    if not ready:
        return task, False
    step = ready.pop()
    if getattr(step._callback, "__self__", None) is not task:
        ready.append(step)
        return task, False
    context.run(step._callback)
    return task, True


class DirectFuture(asyncio.Future[T]):
    """A future that can resume whoever waits for it at once, if nobody else does."""

    _only: tuple[Callable[[Any], object], Context | None] | None = None
    _is_usual = False

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        if self._only is None and not self._is_usual and not self.done():
            self._only = fn, context
            return
        self._schedule()
        super().add_done_callback(fn, context=context)

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        self._schedule()
        return super().remove_done_callback(fn)

    def resolve_at_once(self, result: T) -> None:
        """As `set_result`, and whoever waits has gone on when this returns."""
        only = self._only
        if only is None or only[1] is None or asyncio.current_task() is not None:
            self.set_result(result)
            return
        self._only = None
        super().set_result(result)
        only[1].run(only[0], self)

    def set_result(self, result: T, /) -> None:
        self._schedule()
        super().set_result(result)

    def set_exception(self, exception: type | BaseException, /) -> None:
        self._schedule()
        super().set_exception(exception)

    def cancel(self, msg: Any = None) -> bool:
        self._schedule()
        return super().cancel(msg)

    def _schedule(self) -> None:
        """From now on it is a future as any other: who waits goes on in the next turn."""
        self._is_usual = True
        only, self._only = self._only, None
        if only is not None:
            super().add_done_callback(only[0], context=only[1])
