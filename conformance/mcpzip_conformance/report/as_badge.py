"""The report as a badge: the JSON that shields.io reads (its endpoint badge).

The rule: a badge counts the checks that passed or failed, of all subjects together, and names each level that
isn't passed whole.
"""

import json

from mcpzip_conformance.check import LEVELS
from mcpzip_conformance.report.matrix import Score, played, score
from mcpzip_conformance.verdict import Report

LABEL = "MCP proxy conformance"
_SHOWN = LEVELS[:2]
_NEARLY = 0.9


def render(report: Report) -> str:
    """``report`` as JSON text."""
    scores = {level: _sum(report, level) for level in _SHOWN}
    parts = [f"{level} {scored}" for level, scored in scores.items() if scored.judged]
    broken = sum(score(subject).broken for subject in played(report))
    if broken:
        parts.append(f"{broken} broken")
    badge = {
        "schemaVersion": 1,
        "label": LABEL,
        "message": ", ".join(parts) or "no result",
        "color": _color(scores[_SHOWN[0]], scores[_SHOWN[1]], broken),
    }
    return json.dumps(badge, indent=2) + "\n"


def _sum(report: Report, level: str) -> Score:
    scores = [score(subject, level) for subject in played(report)]
    return Score(
        sum(each.passed for each in scores),
        sum(each.failed for each in scores),
        sum(each.skipped for each in scores),
        sum(each.broken for each in scores),
    )


def _color(must: Score, should: Score, broken: int) -> str:
    """A name of a colour that shields.io knows."""
    if broken or not (must.judged or should.judged):
        return "lightgrey"
    if must.failed:
        return "orange" if must.passed >= _NEARLY * must.judged else "red"
    return "green" if should.failed else "brightgreen"
