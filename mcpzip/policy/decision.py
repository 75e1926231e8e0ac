"""What the config decides about a call of a tool (pure).

The rules:

1. A glob wins over a class. Of the globs that match a tool, of the policy of its server and of that of all
   servers, the one with the most characters besides wildcards decides, so a whole name wins over any other.
   Of equals the stricter decision counts.
2. Without a glob, each class of the tool has the decision of its server's policy, else its ``default``, else
   that of the policy of all servers, else its ``default``, else "allow". The strictest of them counts. A
   ``default`` says nothing of ``reaches_out``, because every tool has another class beside it.
3. A decision depends on the config and the tool's definition alone, and is made once for each definition.
"""

import re
from collections.abc import Callable
from fnmatch import translate

import msgspec

from mcpzip.config import Config
from mcpzip.config.schema import DECISIONS, Decision, PolicyConfig
from mcpzip.config.syntax import member
from mcpzip.model.entry import Entry
from mcpzip.model.globs import specificity
from mcpzip.model.names import join
from mcpzip.model.risk import Risk, RiskClass, overridden, risk_of

CACHED = 50_000
"""Decisions that are kept. With more, all are made anew."""


class Verdict(msgspec.Struct, frozen=True):
    """rule: the key path in the config that decides; "" if none does. risk: of the tool. after: what a flow
    comes from that decides, "" for no flow.
    """

    decision: Decision
    rule: str
    risk: Risk
    after: str = ""


class _Rule(msgspec.Struct, frozen=True):
    matches: Callable[[str], object]
    literal: int
    decision: Decision
    path: str


def stricter(one: Decision, other: Decision) -> Decision:
    """The stricter of two decisions."""
    return max(one, other, key=DECISIONS.index)


class Decisions:
    """The decisions of one config."""

    def __init__(self, config: Config) -> None:
        self._policy = config.policy
        self._servers = {name: server.policy for name, server in config.servers.items()}
        self._risks = {
            name: sorted(
                (
                    (re.compile(translate(glob)).match, specificity(glob), classes)
                    for glob, classes in server.risk
                ),
                key=lambda rule: -rule[1],
            )
            for name, server in config.servers.items()
        }
        self._rules = sorted(
            (
                *_rules(config.policy, "policy", ""),
                *(
                    rule
                    for name, server in config.servers.items()
                    for rule in _rules(server.policy, f"{member('mcpServers', name)}.policy", name)
                ),
            ),
            key=lambda rule: (rule.literal, DECISIONS.index(rule.decision)),
            reverse=True,
        )
        self._made: dict[str, tuple[bytes, Verdict]] = {}

    def of(self, entry: Entry) -> Verdict:
        """What is decided about calls of ``entry``."""
        name = entry.name
        made = self._made.get(name)
        if made is not None and made[0] == entry.digest:
            return made[1]
        if len(self._made) >= CACHED:
            self._made.clear()
        verdict = self._verdict(entry, name)
        self._made[name] = entry.digest, verdict
        return verdict

    def risk(self, entry: Entry) -> Risk:
        """The risk of ``entry``: as the server's ``risk`` has it, else as its annotations say."""
        risk = risk_of(entry.read())
        for matches, _, classes in self._risks.get(entry.server, ()):
            if matches(entry.tool):
                return overridden(risk, classes)
        return risk

    def _verdict(self, entry: Entry, name: str) -> Verdict:
        risk = self.risk(entry)
        for rule in self._rules:
            if rule.matches(name):
                return Verdict(rule.decision, rule.path, risk)
        own = self._servers.get(entry.server, _NOTHING)
        path = f"{member('mcpServers', entry.server)}.policy"
        found = [_by_class(each, own, path, self._policy) for each in risk.classes]
        decision, rule_path = max(found, key=lambda one: (DECISIONS.index(one[0]), bool(one[1])))
        return Verdict(decision, rule_path, risk)


_NOTHING = PolicyConfig()


def _rules(policy: PolicyConfig, path: str, server: str) -> list[_Rule]:
    """The globs of ``policy`` for whole names of tools. server: "" for the policy of all servers."""
    rules = []
    for glob, decision in policy.tools:
        # The name of a server has no wildcard: it stands for itself.
        whole = join(server, glob) if server else glob
        rules.append(
            _Rule(
                re.compile(translate(whole)).match,
                specificity(whole),
                decision,
                member(f"{path}.tools", glob),
            )
        )
    return rules


def _by_class(each: RiskClass, own: PolicyConfig, path: str, general: PolicyConfig) -> tuple[Decision, str]:
    """The decision about one class, and the key path that makes it."""
    for policy, where in ((own, path), (general, "policy")):
        by_class = dict(policy.classes)
        if each in by_class:
            return by_class[each], f"{where}.{each}"
        if policy.default is not None:
            if each == "reaches_out":
                return "allow", ""
            return policy.default, f"{where}.default"
    return "allow", ""
