"""Reads the calls that the daemon of a config remembers, and keeps them, so that each look asks only for what
is new. It blocks.
"""

import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import RECORDED_CALLS
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.call_report import CallReport, CallsAnswer

_ANSWERS = 50
"""That are read at one look: more than the calls of all proxies of a daemon need."""


class RecordedCalls:
    """The last calls of one daemon, `RECORDED_CALLS` at most. Not thread-safe."""

    def __init__(self, config: str, project: str) -> None:
        """config, project: the paths of the files, "" for no project."""
        self._config, self._project = config, project
        self._pid = self._change = 0
        self._calls: dict[int, CallReport] = {}

    def look(self) -> list[CallReport] | None:
        """The calls, the oldest first; None if no daemon runs. Raises DaemonSilentError, and McpzipError if
        the daemon is too old to remember any.
        """
        answer = first = self._ask(0)
        if first is not None and first.pid != self._pid:  # another daemon, which counts anew
            self._pid, self._calls = first.pid, {}
            if self._change:
                self._change = 0
                answer = first = self._ask(0)
        for _ in range(_ANSWERS):
            if answer is None or answer.pid != self._pid:
                break
            self._calls.update((call.number, call) for call in answer.calls)
            if not answer.more:
                break
            answer = self._ask(answer.calls[-1].number)
        if first is None or answer is None:
            self._pid = 0
            return None
        self._change = first.change
        numbers = sorted(self._calls)[-RECORDED_CALLS:]
        self._calls = {number: self._calls[number] for number in numbers}
        return list(self._calls.values())

    def _ask(self, before: int) -> CallsAnswer | None:
        """The calls before the one of this number, 0 for the newest; None if no daemon runs."""
        said = asking.ask(self._config, self._project, "calls", since=self._change, before=before)
        if said is not None:
            return msgspec.convert(said, CallsAnswer)
        found = asking.ask(self._config, self._project, "ping")
        if not isinstance(found, dict):
            return None
        raise McpzipError(
            f"The daemon that runs is of version {found.get('version')}, which remembers no calls. "
            "mcpzip daemon restart starts one of this version; the sessions of the agents go on."
        )
