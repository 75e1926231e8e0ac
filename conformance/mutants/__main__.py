"""``python -m conformance.mutants [FAULT…]``: every wrong proxy, and whether its check notices.

Exit code 1 when one goes unnoticed.
"""

import asyncio
import sys

from conformance.mutants.faults import FAULTS
from conformance.mutants.hunt import hunt
from conformance.verdict import Status


async def _main(names: list[str]) -> int:
    missed = 0
    for name in names or list(FAULTS):
        verdict = await hunt(name)
        caught = verdict.status is Status.FAILED
        missed += not caught
        print(f"{name:24} {'caught' if caught else 'MISSED'}  {verdict.check:36} {verdict.summary}")
    return 1 if missed else 0


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in FAULTS]
    if unknown:
        print(f"There is no fault {unknown[0]!r}; the faults are {', '.join(FAULTS)}.", file=sys.stderr)
        sys.exit(2)
    sys.exit(asyncio.run(_main(sys.argv[1:])))
