"""A fault of the relay, as data.

The rule: a fault is a row: its description, the check that must detect it, and the changed parts of the
relay, each a subclass of the correct one. The relay itself contains no fault.
"""

from dataclasses import dataclass

from mcpzip_conformance.mutants.relay.relay import Parts


@dataclass(frozen=True, slots=True)
class Fault:
    """One row. check: the id of the check that must fail; parts: the wrong classes; mode: the variant of the
    subject ``relay`` that gets them; also: further checks of level must that the fault breaks."""

    about: str
    check: str
    parts: Parts
    mode: str = "names"
    also: tuple[str, ...] = ()
