"""The stemmer agrees with Snowball, but for going on until nothing changes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.stemmer import ENDINGS, snowball, stem, with_dictionary

STEMS = [
    "a",
    "mess",
    "relat",
    "organ",
    "happ",
    "ag",
    "runn",
    "fl",
    "general",
    "creat",
    "quer",
    "sk",
    "univers",
]
_SUFFIXES = """
s es ies sses ied ed ing edly ingly eed eedly y ly li ousli fulli lessli tional enci anci abli entli izer
ization ational ation ator alism aliti alli fulness ousness iveness iviti biliti bli logi alize icate iciti
ical ful ness ative al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion e l ll or
ist i
"""
SUFFIXES = tuple(_SUFFIXES.split())

english = st.builds(
    lambda stem, suffixes: stem + "".join(suffixes),
    st.sampled_from(STEMS) | st.text("abcdefghijklmnopqrstuvwxyz", max_size=8),
    st.lists(st.sampled_from(SUFFIXES), max_size=3),
).filter(lambda word: len(word) > 2)


def to_the_end(step: Callable[[str], str], word: str) -> set[str]:
    """Every form ``word`` goes through."""
    forms = {word}
    while (word := step(word)) not in forms:
        forms.add(word)
    return forms


@given(english)
def test_a_stem_is_where_snowball_ends(word: str) -> None:
    plain = snowball()().stemWord
    assert stem(word) in to_the_end(plain, word)
    assert stem(word) in to_the_end(plain, plain(stem(word)))


@given(english)
def test_idempotent(word: str) -> None:
    assert stem(stem(word)) == stem(word)


letters = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=12)


@given(letters.filter(lambda word: not word.endswith(ENDINGS)))
def test_words_without_one_of_the_endings_are_left_alone_by_snowball(word: str) -> None:
    assert snowball()().stemWord(word) == word


@given(english)
def test_looking_suffixes_up_changes_nothing(word: str) -> None:
    assert with_dictionary(snowball())().stemWord(word) == snowball()().stemWord(word)


def test_a_stemmer_built_differently_is_used_as_it_comes() -> None:
    class Other:
        def stemWord(self, word: str) -> str:
            return self.find_among_b(word)

        def find_among_b(self, word: str) -> str:
            return word[:3]

    assert with_dictionary(Other) is Other


@pytest.mark.parametrize("word", ["", "ab", "日本語", "naïves", "x" * 41 + "s", "a1s"])
def test_what_is_no_english_word_is_kept(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("message", "messages"),
        ("list", "listing"),
        ("create", "created"),
        ("search", "searching"),
        ("query", "queries"),
        ("calendar", "calendars"),
    ],
)
def test_inflections_meet(left: str, right: str) -> None:
    assert stem(left) == stem(right)
