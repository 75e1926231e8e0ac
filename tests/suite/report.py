"""What came of it, as Markdown tables: docs/official-suite.md holds them.

The rule: they say how many scenarios passed of how many; which is required is the revision's business.
"""

from collections.abc import Iterator, Mapping, Sequence

from legs import LEGS, Run

GROUPS: Mapping[str, tuple[str, ...]] = {
    "the connection": ("server-", "ping", "dns-", "initialize", "request-metadata", "sse-retry"),
    "headers": ("http-",),
    "tools": ("tools-", "tools_"),
    "sampling and elicitation": ("tools-call-sampling", "tools-call-elicitation", "elicitation-"),
    "questions in rounds": ("input-required-", "sep-2322-"),
    "resources": ("resources-", "sep-2164-"),
    "prompts": ("prompts-",),
    "completions, logging, caching": ("completion-", "logging-", "caching"),
    "JSON Schema": ("json-schema-",),
    "tasks (extension)": ("tasks-",),
}
"""By what a scenario's name begins with; the longest beginning counts."""


def overview(runs: Sequence[Run]) -> Iterator[str]:
    """A line a run."""
    yield "| leg | revision | required scenarios | other scenarios | checks passed | failed |"
    yield "|---|---|--:|--:|--:|--:|"
    for run in runs:
        required = run.required()
        scored = [it.ok for name, it in run.results.items() if name in required]
        others = [it.ok for name, it in run.results.items() if name not in required]
        passed = sum(it.passed for it in run.results.values())
        failed = sum(it.failed for it in run.results.values())
        counts = f"{sum(scored)} of {len(scored)} | {sum(others)} of {len(others)} | {passed} | {failed}"
        yield f"| {run.leg} | {run.revision} | {counts} |"


def by_group(runs: Sequence[Run]) -> Iterator[str]:
    """A line a revision, side and group of scenarios; a column a leg of that side."""
    for side in ("server", "client"):
        legs = [leg for leg in LEGS if LEGS[leg].side == side and any(run.leg == leg for run in runs)]
        if not legs:
            continue
        yield f"| scenarios | revision | {' | '.join(legs)} |"
        yield f"|---|---|{'--:|' * len(legs)}"
        for revision in dict.fromkeys(run.revision for run in runs):
            of_leg = {run.leg: run for run in runs if run.revision == revision}
            for group in GROUPS:
                counts = [_counted(of_leg[leg], group) for leg in legs]
                if any(counts):
                    yield f"| {group} | {revision} | {' | '.join(counts)} |"
        yield ""


def group_of(scenario: str) -> str:
    """The group it is reported with."""
    return max(
        (len(start), group)
        for group, starts in GROUPS.items()
        for start in starts
        if scenario.startswith(start)
    )[1]


def _counted(run: Run, group: str) -> str:
    found = [outcome.ok for name, outcome in run.results.items() if group_of(name) == group]
    return f"{sum(found)} of {len(found)}" if found else ""
