"""Which calls of a program run unasked (pure).

The rule: what only reads runs, and what a person has allowed in the config: by the policy, or by ``code``.
What is unknown counts as what may destroy (`model.risk`). A policy that is stricter counts.
"""

import re
from fnmatch import translate
from functools import lru_cache

import msgspec

from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.quoting import named
from mcpzip.policy.decision import Decisions

_RULE = "code.effects"


class Effect(msgspec.Struct, frozen=True):
    """What is decided about a call. asks: whether somebody has to allow it. rule: the key path in the config
    that says so. refusal: why it is refused, as a sentence; "" if it isn't.
    """

    asks: bool = False
    rule: str = ""
    refusal: str = ""


class Effects:
    """Decides about the calls of programs, by one config."""

    def __init__(self, config: Config, decisions: Decisions) -> None:
        self._code, self._decisions = config.code, decisions

    def of(self, entry: Entry) -> Effect:
        """The decision about a call of ``entry``. What the policy denies is left to the policy."""
        verdict = self._decisions.of(entry)
        if verdict.decision == "deny":
            return Effect()
        if verdict.decision == "ask":
            return Effect(asks=True, rule=verdict.rule)
        if verdict.risk.effect == "reads" or verdict.rule or _matches(self._code.allow, entry.name):
            return Effect()
        if self._code.effects == "allow":
            return Effect()
        if self._code.effects == "ask":
            return Effect(asks=True, rule=_RULE)
        return Effect(
            refusal=f"{named(entry.name)} may do more than read ({verdict.risk.words}), and programs may not "
            f"call such tools ({_RULE}). Call it with execute_tool."
        )


def _matches(globs: tuple[str, ...], name: str) -> bool:
    pattern = _pattern(globs)
    return pattern is not None and pattern.fullmatch(name) is not None


@lru_cache(maxsize=8)
def _pattern(globs: tuple[str, ...]) -> "re.Pattern[str] | None":
    return re.compile("|".join(map(translate, globs))) if globs else None
