"""Notes the long turns of the event loop of the process that starts with it (`event_loop_watchdog.py`).

A turn is one callback, measured in processor time of the loop's thread: a busy machine makes no turn longer.
asyncio is not imported for it: what mcpzip imports, and when, stays as it is.
"""

import os
import sys

VARIABLE = "MCPZIP_TEST_TURNS"
"""Names the file that turns are appended to, a line each: seconds, a space, the callback."""
LEAST = 0.01
"""Seconds of processor time from which on a turn is noted."""


class _Watcher:
    """Waits for `asyncio.events` to be imported, and has its handles measured."""

    def find_spec(self, name, path, target=None):
        if name != "asyncio.events":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def watched(module):
            execute(module)
            _measure(module.Handle)

        spec.loader.exec_module = watched
        return spec


def _measure(handle):
    from time import thread_time

    run, file = handle._run, os.environ[VARIABLE]

    def measured(self):
        begun = thread_time()
        what = self._callback
        try:
            return run(self)
        finally:
            taken = thread_time() - begun
            if taken >= LEAST:
                with open(file, "a", encoding="utf-8", errors="replace") as notes:
                    notes.write(f"{taken:.4f} {_name(what)}\n")

    handle._run = measured


def _name(callback):
    """The task that a callback goes on with and its coroutine, or what the callback itself is called."""
    task = getattr(callback, "__self__", None)
    if hasattr(task, "get_coro"):
        coroutine = task.get_coro()
        return f"{task.get_name()}: {getattr(coroutine, '__qualname__', type(coroutine).__qualname__)}"
    return getattr(callback, "__qualname__", type(callback).__qualname__)


if os.environ.get(VARIABLE):
    sys.meta_path.insert(0, _Watcher())
