"""Counting tokens with the tokenizer."""

import pytest

from mcpzip.server.token_counter import token_counter


def test_a_text_with_the_name_of_a_special_token_is_counted_as_text() -> None:
    """A tool that described `<|endoftext|>` ended `mcpzip tokens` with an error of the tokenizer."""
    pytest.importorskip("bpe_openai")
    count, _ = token_counter()
    assert count("ends with <|endoftext|>") > count("ends with ") + 1
