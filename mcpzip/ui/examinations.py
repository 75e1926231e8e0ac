"""The checks of `mcpzip doctor`, as the page *Doctor* runs them.

The rules:

1. They change nothing: no fix of a finding is run here.
2. Each kind runs once at a time, and within its time limit.
3. Servers are started only by `with_servers`, in a proxy of their own, which ends them.
"""

import asyncio
import os

import msgspec

from mcpzip.doctor.examination import examine
from mcpzip.doctor.finding import GROUPS, Finding, Level
from mcpzip.doctor.server_checks import Tried, try_servers
from mcpzip.doctor.setup import Setup, read_setup
from mcpzip.model.errors import McpzipError
from mcpzip.model.redaction import redact
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.threads import in_thread
from mcpzip.ui.limits import CHECKS_TIME, FINDING_LINES, FINDINGS, SERVER_CHECKS_TIME


class ExaminationError(McpzipError):
    """The checks run already, or they took too long."""


class ShownFinding(msgspec.Struct, frozen=True):
    """A finding as a page shows it, without secrets. See `doctor.finding.Finding`."""

    level: Level
    subject: str
    problem: str
    evidence: list[str]
    remedy: str
    command: str
    fixable: bool


class Group(msgspec.Struct, frozen=True):
    """The findings of one group of checks, the worst first. more: how many others there are. asked: False
    where the group needs servers, and none was asked.
    """

    title: str
    findings: list[ShownFinding]
    more: int
    asked: bool


class Examined(msgspec.Struct, frozen=True):
    """What all checks found. counts: findings by level. servers: how many are enabled. fix: the command that
    fixes what can be fixed without asking; "" if there is nothing.
    """

    groups: list[Group]
    counts: dict[Level, int]
    servers: int
    fix: str


class Examinations:
    """The checks of one config. Belongs to one event loop. config, project: paths, as of `Sources`."""

    def __init__(self, config: str, project: str) -> None:
        self._config, self._project = config, project
        self._running: dict[bool, asyncio.Lock] = {asks: asyncio.Lock() for asks in (False, True)}

    async def offline(self) -> Examined:
        """All checks that start and ask no server. Raises ExaminationError."""
        async with self._running[False]:
            return await self._run(CHECKS_TIME, asks=False)

    async def with_servers(self) -> Examined:
        """All checks: starts every server once. Raises ExaminationError."""
        if self._running[True].locked():
            raise ExaminationError("The servers are being asked already. Wait until that has ended.")
        async with self._running[True]:
            return await self._run(SERVER_CHECKS_TIME, asks=True)

    async def _run(self, limit: float, *, asks: bool) -> Examined:
        try:
            async with asyncio.timeout(limit):
                return await self._examine(asks=asks)
        except TimeoutError:
            raise ExaminationError(
                f"The checks took longer than {limit:.0f} s, so they were ended. mcpzip doctor waits longer."
            ) from None

    async def _examine(self, *, asks: bool) -> Examined:
        setup = await in_thread(lambda: read_setup(self._config, os.environ, self._project), "setup")
        if setup.config is None:
            return shown(await in_thread(lambda: examine(setup, None, {}), "checks"), setup, asked=asks)
        proxy = Proxy(setup.config, setup.catalog)
        tried: dict[str, Tried] = {}
        try:
            if asks:
                tried = await try_servers(proxy, list(setup.servers))
            found = await in_thread(lambda: examine(setup, proxy, tried), "checks")
        finally:
            await proxy.close()
        return shown(found, setup, asked=asks)


def shown(findings: list[Finding], setup: Setup, *, asked: bool) -> Examined:
    """What a page shows of ``findings``. asked: whether the servers were (pure)."""
    groups: list[Group] = []
    counts: dict[Level, int] = {}
    for finding in findings:
        counts[finding.level] = counts.get(finding.level, 0) + 1
    for key, title in GROUPS.items():
        found = [finding for finding in findings if finding.group == key]
        rows = [_shown_finding(finding) for finding in found[:FINDINGS]]
        groups.append(Group(title, rows, len(found) - len(rows), asked or key not in ("servers", "sign-in")))
    fix = setup.mcpzip("doctor", "--fix") if any(finding.fix for finding in findings) else ""
    return Examined(groups, counts, len(setup.servers), redact(fix))


def _shown_finding(finding: Finding) -> ShownFinding:
    return ShownFinding(
        finding.level,
        redact(finding.subject),
        redact(finding.problem),
        [line for line in map(redact, finding.evidence[:FINDING_LINES]) if line.strip()],
        redact(finding.remedy),
        redact(finding.command),
        finding.fix is not None,
    )
