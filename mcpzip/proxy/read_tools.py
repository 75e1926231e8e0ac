"""The tools that `execute_read_tool` runs, if the config offers it: those that only read.

The rule: what counts is the class of a tool (`policy.decision`), which a person may have set, and not how the
tool is called or shown.
"""

from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.errors import CallRefusedError
from mcpzip.model.quoting import named
from mcpzip.model.risk import Risk
from mcpzip.policy.decision import Decisions
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.metatools import EXECUTE, EXECUTE_READ, STATUS

NOT_READ_ONLY = "not read-only"
"""The outcome of a refused call, for the audit log."""

_OWN = tuple((each, Risk("reads" if each.tool == STATUS else "writes", False)) for each in ADMIN_TOOLS)


class ReadTools:
    """A container of tools, for one config. Thread-safe."""

    def __init__(self, config: Config) -> None:
        self._decisions = Decisions(config)

    def __contains__(self, entry: object) -> bool:
        return isinstance(entry, Entry) and self._risk(entry).effect == "reads"

    def check(self, entry: Entry) -> None:
        """Raises CallRefusedError if a call of ``entry`` may do more than read."""
        risk = self._risk(entry)
        if risk.effect == "reads":
            return
        name = entry.tool if _own_risk(entry) else entry.name
        raise CallRefusedError(
            f"{EXECUTE_READ} runs only tools that read, and the class of {named(name)} is: {risk.words}. "
            f"Nothing ran. Call it with {EXECUTE}.",
            NOT_READ_ONLY,
        )

    def _risk(self, entry: Entry) -> Risk:
        return _own_risk(entry) or self._decisions.of(entry).risk


def _own_risk(entry: Entry) -> Risk | None:
    """The risk of a tool of mcpzip itself; None for any other, also for one that is equal to one of ours."""
    return next((risk for tool, risk in _OWN if tool is entry), None)
