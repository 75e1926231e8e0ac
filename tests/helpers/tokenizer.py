"""Tokens as a real tokenizer counts them (OpenAI's o200k_base)."""

import warnings
from functools import cache
from typing import Any


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own files
        import bpe_openai  # takes most of a second

    return bpe_openai.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(_encoding().encode(text))
