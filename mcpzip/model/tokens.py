"""How many tokens a text takes up in a model's context, near enough and without a tokenizer.

The rule: rather too many than too few, in every script. A word of Latin letters is a token for every six of
them, a mark is one, three digits are one, a space is none; any other letter is one, and what lies outside the
common scripts, such as emoji, three.

Measured against OpenAI's o200k_base on the lines of 5,547 real tools: for ten lines it says 1.15 to 1.69
times their tokens, for ten bare names 1.02 to 1.62, and 1.35 for all. What is over is room for models that
cut words shorter. A token for every three bytes would say .88 to 1.68, and so be too few at times.
"""

import re

_PARTS = re.compile(
    r"(?P<word>[A-Za-z]+)|[0-9]{1,3}|(?P<space> +)"
    r"|(?P<rare>[\ua000-\uabff\ud7b0-\ufeff\U00010000-\U0010ffff])|.",
    re.DOTALL,
)
_LETTERS = 6
_RARE = 3


def estimate(text: str) -> int:
    """Tokens that ``text`` takes, at most, as far as can be told so cheaply."""
    total = 0
    for part in _PARTS.finditer(text):
        kind = part.lastgroup
        if kind is None:
            total += 1
        elif kind == "word":
            total -= (part.start() - part.end()) // _LETTERS
        elif kind == "rare":
            total += _RARE
    return total
