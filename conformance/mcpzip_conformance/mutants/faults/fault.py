"""What a fault is.

The rule: a fault is a row: what is wrong, the check that must notice, and the parts of the relay that are
wrong in it, each a subclass of the right one. The relay itself knows of no fault.
"""

from dataclasses import dataclass

from mcpzip_conformance.mutants.relay.relay import Parts


@dataclass(frozen=True, slots=True)
class Fault:
    """One row. check: the id of the check that must fail; parts: what is wrong; mode: the variant of the
    subject ``relay`` that is made wrong; also: the further checks of level must that rightly fail with it."""

    about: str
    check: str
    parts: Parts
    mode: str = "names"
    also: tuple[str, ...] = ()
