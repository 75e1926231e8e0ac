"""The report for programs: the fields of `conformance.verdict.Report`, as they are called there."""

import msgspec

from conformance.verdict import Report


def render(report: Report) -> str:
    """``report`` as JSON text, indented."""
    return msgspec.json.format(msgspec.json.encode(report)).decode()
