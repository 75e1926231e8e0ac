"""All checks, in one file or more for each group.

The rule: a check plays a scene and explains a failure in one sentence. It names servers and tools; how a
subject shows these, only `mcpzip_conformance.route` knows.
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
    poisoning,
    programs,
    protocol,
    replicas,
    replicas_changing,
    replicas_ending,
    resilience,
    resilience_hostile,
    resource_server,
    results,
    search,
    security,
    shared,
    shared_harm,
    shared_questions,
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
    "poisoning",
    "programs",
    "protocol",
    "replicas",
    "replicas_changing",
    "replicas_ending",
    "resilience",
    "resilience_hostile",
    "resource_server",
    "results",
    "search",
    "security",
    "shared",
    "shared_harm",
    "shared_questions",
    "web",
]

ALL: tuple[Check, ...] = registered()
