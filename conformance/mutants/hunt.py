"""A wrong proxy before the check that must notice."""

from pathlib import Path

import msgspec

from conformance.checks import ALL
from conformance.client import PATIENCE
from conformance.mutants.faults import FAULTS
from conformance.runner import judge
from conformance.subject import Start, Subject
from conformance.verdict import Verdict

HERE = Path(__file__).parent


def mutant(fault: str) -> Subject:
    """The relay with this fault. KeyError when there is no such fault."""
    right = Subject.load(HERE / f"{FAULTS[fault].mode}.toml")
    start = Start(command=(*right.start.command, fault), env=right.start.env)
    return msgspec.structs.replace(right, id=fault, title=fault, start=start)


async def hunt(fault: str, patience: float = PATIENCE) -> Verdict:
    """What the check named beside ``fault`` says of it."""
    [check] = [check for check in ALL if check.id == FAULTS[fault].check]
    return await judge(mutant(fault), check, patience=patience)
