"""What the suite is set on: the legs, and what can't be had on some of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import official
from official import REVISIONS, Outcome, Requirements

Results = Mapping[str, Outcome]
"""By scenario."""

_MODERN = REVISIONS[-1]


@dataclass(frozen=True)
class Leg:
    """One way to set the suite on something. side: the suite's; before: what mcpzip's upstream is reached
    over, "" for no mcpzip; mixed: one side of mcpzip speaks the other era than the suite; signs_in: the
    scenarios of authorization are on, and no others."""

    side: str
    before: str = ""
    mixed: bool = False
    signs_in: bool = False

    def requirements(self, revision: str) -> Requirements:
        """What ``revision`` asks of it."""
        told = official.requirements(revision, self.side)
        return Requirements(
            tuple(name for name in told.required if self._has(name)),
            {name: reason for name, reason in told.others.items() if self._has(name)},
        )

    def _has(self, scenario: str) -> bool:
        return scenario.startswith("auth/") is self.signs_in


LEGS: Mapping[str, Leg] = {
    "direct": Leg("server"),
    "through to stdio": Leg("server", before="stdio"),
    "through to http": Leg("server", before="http"),
    "through to the other era": Leg("server", before="stdio", mixed=True),
    "client": Leg("client"),
    "client of the other era": Leg("client", mixed=True),
    "client that signs in": Leg("client", signs_in=True),
}

_NO_INITIALIZE = "the server judges by the modern rules initialize, which a legacy client gets where it can"
BEYOND: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("through to the other era", _MODERN): {
        "server-stateless": "a legacy server refuses a client that lacks a capability by a result",
        "input-required-result-basic-elicitation": "a legacy server's questions have no names",
        "input-required-result-multiple-input-requests": "a legacy server asks one question at a time",
    },
    ("client of the other era", _MODERN): {
        "request-metadata": _NO_INITIALIZE,
        "http-standard-headers": _NO_INITIALIZE,
    },
}
"""What a revision requires and can't be had where eras are mixed: by leg and revision, with the reason."""


@dataclass(frozen=True)
class Run:
    """One leg under one revision."""

    leg: str
    revision: str
    results: Results

    def required(self) -> list[str]:
        """The scenarios that have to pass."""
        told = LEGS[self.leg].requirements(self.revision).required
        beyond = BEYOND.get((self.leg, self.revision), {})
        return [name for name in told if name not in beyond]
