"""Which of several globs is meant."""

import pytest

from mcpzip.model.globs import specificity


@pytest.mark.parametrize(
    ("glob", "count"), [("git__merge", 10), ("git__*", 5), ("*", 0), ("[ab]c?", 1), ("[!a]b", 1)]
)
def test_wildcards_make_a_glob_less_specific(glob: str, count: int) -> None:
    assert specificity(glob) == count
