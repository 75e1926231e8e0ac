"""Which tools, prompts and resources a person may use (pure): the ``access`` of the config.

The rules:

1. Who isn't known – an agent on this machine, over stdio – may use everything. Without an ``access`` so may
   everybody.
2. A rule applies to a person who is in one of its groups and has all of its scopes. Without groups, or
   without scopes, it applies to everybody in that respect.
3. What no rule that applies allows is forbidden, and so is what one denies, whatever others allow.
4. A glob without ``__`` is one of servers: of their tools, and of their prompts and resources, which count as
   `reads`. One with ``__`` is one of tools by their whole names, and of nothing else.
5. With ``risk`` a rule that allows is for tools of which the worst effect is among its classes; one that
   denies is for tools of which any class is.
"""

import re
from collections.abc import Callable
from fnmatch import translate

import msgspec

from mcpzip.config import Config
from mcpzip.config.schema import AccessRule
from mcpzip.model.entry import Entry
from mcpzip.model.names import join
from mcpzip.model.principal import Principal
from mcpzip.policy.decision import Decisions

_SEPARATOR = join("", "")

Applying = frozenset[int]
"""The rules that apply to a person, by number. Those of whom it is the same may use the same."""


class _Rule(msgspec.Struct, frozen=True):
    rule: AccessRule
    servers: tuple[Callable[[str], object], ...]
    tools: tuple[Callable[[str], object], ...]
    servers_of_tools: tuple[Callable[[str], object], ...]

    def is_for(self, groups: frozenset[str]) -> bool:
        return self.rule.groups is None or not self.rule.groups.isdisjoint(groups)


class AccessRules:
    """The rules of one config, which has an ``access``."""

    def __init__(self, config: Config) -> None:
        self._rules = tuple(map(_compiled, config.access or ()))
        self._decisions = Decisions(config)

    def applying(self, principal: Principal) -> Applying:
        """The rules that apply to ``principal``."""
        return frozenset(
            at
            for at, each in enumerate(self._rules)
            if each.is_for(principal.groups) and principal.scopes.issuperset(each.rule.scopes)
        )

    def permit(self, applying: Applying, entry: Entry) -> bool:
        """Whether whom these rules apply to may use the tool ``entry``."""
        rules = [self._rules[at] for at in applying]
        matching = [each for each in rules if self._matches(each, entry)]
        return bool(matching) and all(each.rule.allows for each in matching)

    def open_server(self, applying: Applying, server: str) -> bool:
        """Whether they may use the prompts and resources of ``server``."""
        rules = [self._rules[at] for at in applying]
        matching = [each for each in rules if _opens(each, server)]
        return bool(matching) and all(each.rule.allows for each in matching)

    def may_have(self, applying: Applying, server: str) -> bool:
        """Whether they may use anything of ``server``, whatever it turns out to have."""
        rules = [self._rules[at] for at in applying]
        closed = any(_any(each.servers, server) for each in rules if _denies_all(each.rule))
        return not closed and any(
            _any((*each.servers, *each.servers_of_tools), server) for each in rules if each.rule.allows
        )

    def missing_scopes(self, principal: Principal, entry: Entry) -> tuple[str, ...]:
        """The scopes with which ``principal`` could use ``entry``, which it can't now: those of the rule of
        which fewest are missing. () if no scope helps.
        """
        now = self.applying(principal)
        best: tuple[str, ...] = ()
        if self.permit(now, entry):
            return best
        for each in self._rules:
            lacking = set(each.rule.scopes) - principal.scopes
            if not (each.rule.allows and lacking and each.is_for(principal.groups)):
                continue
            if not self._matches(each, entry):
                continue
            with_them = msgspec.structs.replace(principal, scopes=principal.scopes | lacking)
            fewer = not best or len(lacking) < len(set(best) - principal.scopes)
            if fewer and self.permit(now | self.applying(with_them), entry):
                best = each.rule.scopes
        return best

    def _matches(self, each: _Rule, entry: Entry) -> bool:
        if not (_any(each.servers, entry.server) or _any(each.tools, entry.name)):
            return False
        if each.rule.risk is None:
            return True
        risk = self._decisions.risk(entry)
        if each.rule.allows:
            return risk.effect in each.rule.risk
        return not each.rule.risk.isdisjoint(risk.classes)


def _opens(each: _Rule, server: str) -> bool:
    return _any(each.servers, server) and (each.rule.risk is None or "reads" in each.rule.risk)


def _denies_all(rule: AccessRule) -> bool:
    return not rule.allows and rule.risk is None


def _any(globs: tuple[Callable[[str], object], ...], name: str) -> bool:
    return any(matches(name) for matches in globs)


def _compiled(rule: AccessRule) -> _Rule:
    tools = [glob for glob in rule.targets if _SEPARATOR in glob]
    return _Rule(
        rule,
        tuple(_matcher(glob) for glob in rule.targets if _SEPARATOR not in glob),
        tuple(map(_matcher, tools)),
        tuple(_matcher(glob.partition(_SEPARATOR)[0] or "*") for glob in tools),
    )


def _matcher(glob: str) -> Callable[[str], object]:
    return re.compile(translate(glob)).match
