"""Texts that are written to be chosen or found, and items that are too large (pure).

Sources: MCP preference manipulation (arXiv 2505.11154); `model.limits` for sizes.
"""

import re
from collections import Counter
from collections.abc import Iterator

from mcpzip.checks.finding import Hit
from mcpzip.checks.rules import RuleSet, rule

PRAISE = RuleSet(
    [
        rule("ranking.praise", "risky", pattern, needs=needs)
        for pattern, needs in (
            (
                r"\b(?:never|do not|don't) use (?:any )?other (?:tool|server)s?\b",
                ("other tool", "other server"),
            ),
            (r"\b(?:this is )?the only tool (?:that )?you (?:will )?(?:ever )?need\b", ("only tool",)),
            (
                r"\b(?:must|should) (?:always )?be (?:preferred|chosen|used) (?:over|before|instead of) "
                r"(?:all|any|every) other\b",
                (
                    "over all",
                    "over any",
                    "over every",
                    "before all",
                    "before any",
                    "before every",
                    "instead of a",
                ),
            ),
            (r"\b(?:has|have) (?:the )?highest priority\b", ("highest priority",)),
            (
                r"\bmust always be called first\b|\balways call this (?:tool )?first for (?:every|any|all)\b",
                ("always be called first", "first for "),
            ),
            (r"\bbest tool for (?:everything|all|every)\b", ("best tool",)),
            (
                r"\b(?:use|call|choose|prefer) (?:this |it )?(?:tool )?(?:before|over|instead of) (?:using )?"
                r"(?:any|all|every) other\b(?! tools? (?:that|which)\b)",
                (" any other", " all other", " every other"),
            ),
            (
                r"\balways (?:pick|choose|prefer|select) (?:this (?:one|tool|server)|it)\b",
                ("always pick", "always choose", "always prefer", "always select"),
            ),
            (
                r"\b(?:never|do not|don't) use (?:the |your |any )?(?:built-?in|native) tools?\b",
                ("built-in tool", "builtin tool", "native tool"),
            ),
            (
                r"\b(?:choose|use|prefer|call) (?:a |the |only )?tools? of this server (?:before|instead of|"
                r"over) (?:the )?tools? of"
                r" other",
                ("of this server",),
            ),
            (
                r"\bwhatever the user (?:asks|says|wants)\b.{0,60}\b(?:choose|use|call|prefer)\b",
                ("whatever the user",),
            ),
        )
    ]
)
"""Texts that ask for more than they describe."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_FEWEST = 25
"""Words of a text in which a word can be called repeated."""
_SHARE = 0.3
"""The share of one word in a text that is stuffed with it."""
_LIST = 60
"""Single words in a row, with commas between them, that are no description."""
_ORDINARY = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "with",
        "that",
        "this",
        "from",
        "you",
        "your",
        "not",
        "can",
        "will",
        "name",
        "type",
        "value",
        "string",
        "true",
        "false",
    ]
)
LARGE = 20_000
"""Characters of one text, or of a tool, that are called large."""


def stuffing(folded: str) -> Iterator[Hit]:
    """A text in which a word is repeated again and again, or that is a list of search words."""
    if len(folded) < 150:
        return
    parts = folded[:20_000].split()
    often = Counter(parts).most_common(1)[0][1]  # with its commas and full stops, which is quicker
    words = _WORD.findall(folded[:20_000]) if often * 3 >= _SHARE * len(parts) else []
    if len(words) >= _FEWEST:
        counted = Counter(word for word in words if word not in _ORDINARY)
        word, times = next(iter(counted.most_common(1)), ("", 0))
        if times >= 8 and times >= _SHARE * len(words):
            yield Hit("ranking.stuffing", "risky", folded.find(word), folded.find(word) + len(word))
            return
    if folded.count(",") >= _LIST:
        listed = sum(1 for part in folded.split(",") if 0 < part.count(" ") <= 2 and len(part) < 30)
        if listed >= _LIST and listed >= 0.9 * (folded.count(",") + 1):
            yield Hit("ranking.stuffing", "risky", 0, 1)
