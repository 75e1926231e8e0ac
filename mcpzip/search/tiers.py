"""What the ways of ranking, the *tiers*, have in common (pure).

The rule: a tier says how well tools fit a query, or why it can't, and nothing else. What is made of that is
`fusion`'s business; that a tier is late is its caller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

KEYWORD = "keyword"
SEMANTIC = "semantic"
LLM = "llm"


@dataclass(frozen=True, slots=True)
class TierAnswer:
    """What a tier that runs elsewhere made of a query.

    tier: `SEMANTIC` or `LLM`. method: what answered, as people are told ("ollama", "gemini"). scores: by
    the name of the entry; of the semantic tier cosines, −1…1, of the llm tier 0…1, best 1.
    """

    tier: str
    method: str
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TierAbsence:
    """A tier that was asked for and did not answer. reason: one short sentence, no secrets in it."""

    tier: str
    method: str
    reason: str
