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
        legs = [leg for leg in _run(runs) if LEGS[leg].side == side and not LEGS[leg].signs_in]
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


def by_scenario(runs: Sequence[Run]) -> Iterator[str]:
    """For the legs that sign in: a line a scenario, a column a revision, and in it the different checks that
    passed: how often a check is made depends on how many requests there were.
    """
    for leg in filter(lambda leg: LEGS[leg].signs_in, _run(runs)):
        of_revision = {run.revision: run for run in runs if run.leg == leg}
        yield f"| {leg} | {' | '.join(of_revision)} |"
        yield f"|---|{'--:|' * len(of_revision)}"
        for scenario in dict.fromkeys(name for run in of_revision.values() for name in run.results):
            counts = [_checked(run, scenario) for run in of_revision.values()]
            yield f"| `{scenario}` | {' | '.join(counts)} |"
        yield ""


def group_of(scenario: str) -> str:
    """The group it is reported with."""
    return max(
        (len(start), group)
        for group, starts in GROUPS.items()
        for start in starts
        if scenario.startswith(start)
    )[1]


def _run(runs: Sequence[Run]) -> list[str]:
    """The legs that were run, in their order."""
    return [leg for leg in LEGS if any(run.leg == leg for run in runs)]


def _checked(run: Run, scenario: str) -> str:
    """How many different checks passed, of how many; in brackets where the scenario isn't required."""
    outcome = run.results.get(scenario)
    if outcome is None:
        return ""
    made = {check for check, _ in outcome.verdicts}
    failed = {check for check, status in outcome.verdicts if status != "SUCCESS"}
    count = f"{len(made - failed)} of {len(made)}"
    return count if scenario in run.required() else f"({count})"


def _counted(run: Run, group: str) -> str:
    found = [outcome.ok for name, outcome in run.results.items() if group_of(name) == group]
    return f"{sum(found)} of {len(found)}" if found else ""
