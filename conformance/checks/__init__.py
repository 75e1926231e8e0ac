"""Every check there is, one file a group.

The rule: a check plays a scene and says in one sentence what is wrong; it knows servers and tools, never the
way a subject shows them.
"""

from conformance.check import Check, registered
from conformance.checks import arguments, fidelity, protocol, resilience, search, security

__all__ = ["ALL", "arguments", "fidelity", "protocol", "resilience", "search", "security"]

ALL: tuple[Check, ...] = registered()
