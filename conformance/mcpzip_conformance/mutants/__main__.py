"""``python -m mcpzip_conformance.mutants [--thorough] [FAULT…]``: is every faulty proxy detected?
``--thorough``: and whether any unrelated check of level must fails. ``--right``: the relay without a fault
before every check, in each of its modes.

Exit code 1 when one goes unnoticed, or a check fails that has no reason to.
"""

import argparse
import sys

from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands.progress import until_interrupted
from mcpzip_conformance.mutants.faults import FAULTS
from mcpzip_conformance.mutants.hunt import BEYOND, MODES, Hunted, hunt_all, right
from mcpzip_conformance.runner import default_jobs, run
from mcpzip_conformance.verdict import Status, Verdict


async def _hunt(names: list[str], thorough: bool, jobs: int, patience: float) -> int:
    def report(hunted: Hunted) -> None:
        caught = "caught" if hunted.named.status is Status.FAILED else "MISSED"
        print(f"{hunted.fault:24} {caught}  {hunted.named.check:36} {hunted.named.summary}", flush=True)
        for other in hunted.unrelated:
            print(f"{'':24} ALSO    {other.check:36} {other.summary}", flush=True)
        for check in hunted.spared:
            print(f"{'':24} SPARED  {check}", flush=True)

    found = await hunt_all(
        names or list(FAULTS), thorough=thorough, jobs=jobs, patience=patience, done=report
    )
    wrong = sum(not hunted.as_it_should_be for hunted in found)
    print(f"{len(found)} faults, {wrong} not as they should be")
    return 1 if wrong else 0


async def _right(jobs: int, patience: float) -> int:
    def report_failure(subject: object, verdict: Verdict) -> None:
        if verdict.status in (Status.FAILED, Status.BROKEN) and verdict.check not in BEYOND:
            print(f"{verdict.check:36} {verdict.status.value}: {verdict.summary}", flush=True)

    wrong = 0
    for mode in MODES:
        report = await run([right(mode)], ALL, jobs=jobs, patience=patience, done=report_failure)
        [relay] = report.subjects
        failed = {it.check for it in relay.verdicts if it.status in (Status.FAILED, Status.BROKEN)}
        wrong += len(failed - BEYOND.keys())
        print(f"relay:{mode}: {relay.count(Status.PASSED)} passed, {relay.count(Status.SKIPPED)} skipped")
    return 1 if wrong else 0


def main() -> int:
    """Run the command. Returns 2 for an unknown fault."""
    parser = argparse.ArgumentParser(prog="python -m mcpzip_conformance.mutants", description=(__doc__ or ""))
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--right", action="store_true")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--patience", type=float, default=4.0)
    options = parser.parse_args()
    unknown = [name for name in options.faults if name not in FAULTS]
    if unknown:
        print(f"There is no fault {unknown[0]!r}; the faults are {', '.join(FAULTS)}.", file=sys.stderr)
        return 2
    if options.right:
        return until_interrupted(_right(options.jobs, options.patience))
    return until_interrupted(_hunt(options.faults, options.thorough, options.jobs, options.patience))


if __name__ == "__main__":
    sys.exit(main())
