"""What a call of a tool may do: its risk classes (pure).

The rule: the hints of `ToolAnnotations` count, with the specification's defaults where they are missing
(spec: schema `ToolAnnotations`: ``readOnlyHint`` false, ``destructiveHint`` true, ``openWorldHint`` true). So
a tool without annotations writes, may destroy, and reaches out. The hints are the server's own words: they
sort tools, and prove nothing.
"""

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

Effect = Literal["reads", "writes", "destroys"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""The mildest first."""
RiskClass = Literal["reads", "writes", "destroys", "reaches_out"]
RISK_CLASSES: tuple[RiskClass, ...] = get_args(RiskClass)


class Risk(msgspec.Struct, frozen=True):
    """effect: the worst that a call may do to data. reaches_out: whether it may deal with an open world, as a
    web search does.
    """

    effect: Effect
    reaches_out: bool

    @property
    def classes(self) -> tuple[RiskClass, ...]:
        """The classes of the tool. One that destroys also writes."""
        effects: tuple[RiskClass, ...] = (
            ("writes", "destroys") if self.effect == "destroys" else (self.effect,)
        )
        return (*effects, "reaches_out") if self.reaches_out else effects

    @property
    def words(self) -> str:
        """For a person: ``writes, may destroy, reaches out``."""
        return ", ".join(_WORDS[each] for each in self.classes)


_WORDS: dict[RiskClass, str] = {
    "reads": "reads",
    "writes": "writes",
    "destroys": "may destroy",
    "reaches_out": "reaches out",
}

WORST = Risk("destroys", reaches_out=True)
"""Of a tool of which nothing is known."""


class _Annotations(msgspec.Struct):
    read_only: object = msgspec.field(default=False, name="readOnlyHint")
    destructive: object = msgspec.field(default=True, name="destructiveHint")
    open_world: object = msgspec.field(default=True, name="openWorldHint")


class _Tool(msgspec.Struct):
    annotations: object = None


def risk_of(raw: bytes) -> Risk:
    """The risk of the tool ``raw``, the JSON text of an item of `tools/list`. A hint of another type than
    boolean counts as missing; `WORST` for what is no tool.
    """
    try:
        found = msgspec.json.decode(raw, type=_Tool).annotations
        hints = msgspec.convert(found if isinstance(found, dict) else {}, _Annotations)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        return WORST
    effect: Effect = "writes" if hints.destructive is False else "destroys"
    return Risk("reads" if hints.read_only is True else effect, hints.open_world is not False)


def overridden(risk: Risk, classes: Collection[str]) -> Risk:
    """``risk`` as a person's ``classes`` have it. Of a list with an effect only what it names counts; without
    one, the effect stays.
    """
    effects = [effect for effect in EFFECTS if effect in classes]
    return Risk(effects[-1] if effects else risk.effect, "reaches_out" in classes)
