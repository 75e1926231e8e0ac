"""All checks, one file or more a group.

The rule: a check plays a scene and says in one sentence what is wrong; it knows servers and tools, never the
way a subject shows them.
"""

from mcpzip_conformance.check import Check, registered
from mcpzip_conformance.checks import (
    arguments,
    conversation,
    conversation_changes,
    conversation_eras,
    conversation_questions,
    cost,
    definitions,
    fidelity,
    offers,
    protocol,
    resilience,
    resilience_hostile,
    search,
    security,
    web,
)

__all__ = [
    "ALL",
    "arguments",
    "conversation",
    "conversation_changes",
    "conversation_eras",
    "conversation_questions",
    "cost",
    "definitions",
    "fidelity",
    "offers",
    "protocol",
    "resilience",
    "resilience_hostile",
    "search",
    "security",
    "web",
]

ALL: tuple[Check, ...] = registered()
