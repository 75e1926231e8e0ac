"""What is checked, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpzip.cassettes.cassette import Check
from mcpzip_fakes.drift.drift import Area

TIMEOUT = 30.0
"""Seconds for one answer."""


@dataclass(frozen=True)
class Settings:
    """only: one area, None for both. shape, ignore, call: see `Check`, of which these are added. call_all:
    call every tool. timeout: seconds for one answer. unmasked: the values of masked secrets, by their mask.
    """

    only: Area | None = None
    shape: bool = False
    ignore: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    call_all: bool = False
    timeout: float = TIMEOUT
    unmasked: Mapping[str, str] = field(default_factory=dict)

    def with_check(self, check: Check) -> "Settings":
        """These and those that stand in the cassette."""
        return Settings(
            only=self.only,
            shape=self.shape or check.shape,
            ignore=self.ignore + check.ignore,
            call=self.call + check.call,
            call_all=self.call_all,
            timeout=self.timeout,
            unmasked=self.unmasked,
        )

    def ignored_in(self, tool: str) -> list[str]:
        """The paths that don't count in the results of ``tool``; "" for other requests."""
        found = []
        for each in self.ignore:
            before, colon, path = each.rpartition(":")
            if not colon or before == tool:
                found.append(path)
        return found
