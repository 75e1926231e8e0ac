"""Tokens as a real tokenizer counts them (OpenAI's o200k_base)."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own files
    import bpe_openai

_ENCODING = bpe_openai.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(_ENCODING.encode(text))
