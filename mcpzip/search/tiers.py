"""What the *tiers*, the ways of ranking, have in common (pure).

The rule: a tier answers how well tools match a query, or why it can't answer. `fusion` combines the answers;
the callers of tiers enforce deadlines.
"""

from collections.abc import Mapping

import msgspec

KEYWORD = "keyword"
SEMANTIC = "semantic"
LLM = "llm"


class TierAnswer(msgspec.Struct, frozen=True):
    """The scores of a remote tier for a query.

    tier: `SEMANTIC` or `LLM`. method: the service, as users see it ("ollama", "gemini"). scores: by the name
    of the entry; of the semantic tier cosines, −1…1, of the llm tier 0…1, best 1.
    """

    tier: str
    method: str
    scores: Mapping[str, float]


class TierAbsence(msgspec.Struct, frozen=True):
    """A tier that was queried and gave no answer. reason: one short sentence without secrets."""

    tier: str
    method: str
    reason: str
