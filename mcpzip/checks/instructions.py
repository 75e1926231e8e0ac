"""Texts that give orders to the model that reads them (pure).

1. One phrase is *hard* only if no honest tool needs it. Two different kinds of phrases in one text are hard
   together: an order to read a key file and to say nothing of it.
2. A text that speaks of attacks and quotes one is a *note*: that is what security tools do. A quotation
   alone, or a word like *detects* beside the phrase alone, makes a hard finding risky.
"""

import re
from collections.abc import Iterator, Sequence

from mcpzip.checks.finding import Hit, Severity
from mcpzip.checks.languages import OTHER_LANGUAGES
from mcpzip.checks.phrases import ENGLISH
from mcpzip.checks.rules import Rule, RuleSet

RULES = RuleSet((*ENGLISH, *OTHER_LANGUAGES))
"""All of them."""
_TURNS = re.compile(r"\n\n(?:human|user): ", re.IGNORECASE)
_ANSWER = re.compile(r"\n\nassistant: ", re.IGNORECASE)
_ABOUT_ATTACKS = re.compile(
    r"\b(?:detect|scan|flag|classif|inject|attack|jailbreak|malicious|suspicious|red.team|poison|audit|"
    r"block|guard|"
    r"lint|sanitiz|adversarial|phishing|vulnerab|security train|leak|danger|override instructions)"
)
_NEAR = 160
"""Characters before a phrase in which a word about attacks makes it a quotation."""
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»", "„": "“", "「": "」", "『": "』", "‘": "’"}
_OPENED = 200
_CLOSED = 300
_NEVER = re.compile(r"\b(?:never|not|don't|no)\b[^.!?]{0,60}$")


def instruction_like(folded: str, rules: Sequence[Rule]) -> Iterator[Hit]:
    """Each check that ``rules`` find something for in the ``folded`` text, once, with its worst severity."""
    worst: dict[str, Hit] = {}
    quoted = True
    for rule in rules:
        for hit in rule.hits(folded):
            severity = _softened(folded, hit)
            if severity is None:
                continue
            quoted &= severity != hit.severity
            known = worst.get(hit.check)
            if known is None or _ORDER[severity] < _ORDER[known.severity]:
                worst[hit.check] = Hit(hit.check, severity, hit.start, hit.end)
    serious = [hit for hit in worst.values() if hit.severity == "risky"]
    together = len(serious) > 1 and not quoted
    for hit in worst.values():
        raised = together and hit.severity == "risky"
        yield Hit(hit.check, "hard" if raised else hit.severity, hit.start, hit.end)


_ORDER: dict[Severity, int] = {"hard": 0, "risky": 1, "note": 2}


def fake_turns(text: str) -> Iterator[Hit]:
    """A conversation in the format of a completion prompt, with an answer put in the model's mouth.

    Source: the turns of the text completion API that Anthropic's models were trained with.
    """
    human = _TURNS.search(text)
    answer = human and _ANSWER.search(text, human.end())
    if human and answer:
        yield Hit("instruction.markup", "hard", human.start() + 2, answer.end())


def _softened(text: str, hit: Hit) -> Severity | None:
    """The severity of ``hit`` where it stands; None if its opposite is said."""
    before = text[max(0, hit.start - _NEAR) : hit.start]
    if "without" in text[hit.start : hit.start + 8] and _NEVER.search(before):
        return None
    near = (
        _ABOUT_ATTACKS.search(before) is not None
        or _ABOUT_ATTACKS.search(text, hit.end, hit.end + 60) is not None
    )
    quoted = _quoted(text, hit.start, hit.end)
    if quoted and _ABOUT_ATTACKS.search(text):
        return "note"
    if quoted or near:
        return "risky" if hit.severity == "hard" else "note"
    return hit.severity


def _quoted(text: str, start: int, end: int) -> bool:
    """Whether an open quotation mark stands before ``start``, and its closing one after ``end``."""
    begin = max(0, start - _OPENED)
    for at in range(start - 1, begin - 1, -1):
        close = _QUOTES.get(text[at])
        if close is None:
            continue
        opens = at == 0 or not (text[at - 1].isalnum() or text[at - 1] in ".,;:!?")
        return opens and not text[at + 1 : at + 2].isspace() and _closes(text, close, end)
    return False


def _closes(text: str, mark: str, end: int) -> bool:
    at = text.find(mark, end, end + _CLOSED)
    while at != -1 and mark == "'" and text[at + 1 : at + 2].isalnum():  # an apostrophe
        at = text.find(mark, at + 1, end + _CLOSED)
    return at != -1
