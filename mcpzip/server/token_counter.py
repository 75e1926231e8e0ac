"""Counts tokens: with a tokenizer if one is installed, else by an estimate."""

import json
import warnings
from collections.abc import Callable, Mapping

from mcpzip.model.tokens import estimate

_ENCODING = "o200k_base"
"""OpenAI's encoding since GPT-4o."""

Counter = Callable[[str], int]


def token_counter() -> tuple[Counter, str]:
    """The function that counts the tokens of a text, and what it counts, for people."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of how bpe-openai reads its own files
            import bpe_openai

            encoding = bpe_openai.get_encoding(_ENCODING)
    except ImportError:
        return estimate, "tokens (estimated)"
    return lambda text: len(encoding.encode_ordinary(text)), f"tokens ({_ENCODING})"


_READ = ("name", "description", "inputSchema")


def as_model_reads(tool: Mapping[str, object]) -> str:
    """The name, description and input schema of a tool as compact JSON: what a model is given."""
    fields = {key: tool[key] for key in _READ if key in tool}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
