"""Up to how many tokens a result of a tool is sent whole, by the globs of the config (pure)."""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

from mcpzip.config.schema import ResultsConfig
from mcpzip.model.globs import specificity

CACHED = 10_000


def limit_by_glob(settings: ResultsConfig) -> Callable[[str], int | None]:
    """A function from the name of a tool to the tokens up to which its results are sent whole; None if all
    are. Of the globs that match, the one with the most characters besides wildcards decides; of equals the
    last.
    """
    rules = [
        (specificity(glob), number, re.compile(translate(glob)).match, tokens)
        for number, (glob, tokens) in enumerate(settings.tools)
    ]
    rules.sort(key=lambda rule: rule[:2], reverse=True)

    @lru_cache(maxsize=CACHED)
    def limit_of(name: str) -> int | None:
        return next((tokens for _, _, matches, tokens in rules if matches(name)), settings.keep)

    return limit_of
