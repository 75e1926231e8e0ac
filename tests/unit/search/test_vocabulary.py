"""Repairing words: known ones never, unknown ones by the fewest mistakes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.vocabulary import TWO_EDITS_LENGTH, Correction, EditDistance, Vocabulary, is_common_typo

KNOWN = Vocabulary(
    {
        "calendar": 9,
        "calender": 1,
        "message": 7,
        "massage": 1,
        "calculate": 2,
        "repository": 5,
        "todo": 3,
        "list": 8,
    }
    | {
        "temperature": 2,
        "template": 4,
        "authenticate": 2,
        "trend": 3,
        "contact": 2,
        "context": 2,
        "天气": 1,
        "of": 9,
    }
)


def by_table(left: str, right: str) -> int:
    """The textbook's table of optimal string alignment."""
    rows = [list(range(len(right) + 1))]
    for i, letter in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            cost = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


few_letters = st.text("abcé", max_size=9)


@given(few_letters, few_letters)
def test_distance_is_the_textbooks(left: str, right: str) -> None:
    assert EditDistance(left).distance(right) == by_table(left, right)


@pytest.mark.parametrize(
    ("left", "right", "mistakes"),
    [
        ("search", "search", 0),
        ("search", "saerch", 1),
        ("search", "serch", 1),
        ("search", "seearch", 1),
        ("search", "sesrch", 1),
        ("", "abc", 3),
        ("abc", "", 3),
        ("ca", "abc", 3),
    ],
)
def test_distance(left: str, right: str, mistakes: int) -> None:
    assert EditDistance(left).distance(right) == mistakes


@pytest.mark.parametrize(
    ("word", "repair"),
    [
        ("calednar", Correction("typo", ("calendar",), likely=True)),
        ("mesage", Correction("typo", ("message",), likely=True)),
        ("repostory", Correction("typo", ("repository",), likely=True)),
        ("repoxitory", Correction("typo", ("repository",), likely=True)),
        ("repomitory", Correction("typo", ("repository",))),
        ("cacuate", Correction("typo", ("calculate",))),
        ("authentificate", Correction("typo", ("authenticate",))),
        ("todolist", Correction("split", ("todo", "list"))),
        ("temp", Correction("prefix", ("template", "temperature"), likely=True)),
        ("tem", Correction("prefix", ("template", "temperature"), likely=True)),
        ("contxxt", Correction("typo", ("context",))),
        ("contaxt", Correction("typo", ("contact", "context"), likely=True)),
    ],
)
def test_repairs(word: str, repair: Correction) -> None:
    assert KNOWN.correct(word) == repair


@pytest.mark.parametrize("word", ["", "x", "zz", "ca", "blue", "kubernetes", "x1y2", "a" * 100, "天天"])
def test_nothing_near(word: str) -> None:
    assert KNOWN.correct(word) is None


@given(st.text())
def test_never_raises_and_only_offers_what_is_known(word: str) -> None:
    repair = KNOWN.correct(word)
    assert repair is None or all(known in KNOWN for known in repair.alternatives)
    assert KNOWN.correct(word) == repair


vocabulary_words = st.lists(st.text("abcd", min_size=3, max_size=9), min_size=1, max_size=12, unique=True)


@given(vocabulary_words, st.text("abcd", min_size=4, max_size=9))
def test_no_nearer_word_is_missed(known: list[str], word: str) -> None:
    most = 2 if len(word) >= TWO_EDITS_LENGTH else 1
    distances = {candidate: by_table(word, candidate) for candidate in known if candidate != word}
    least = min(distances.values(), default=99)
    nearest = {candidate for candidate, mistakes in distances.items() if mistakes == least}
    found = [near for near in Vocabulary(dict.fromkeys(known, 1)).nearest(word, most) if near != word]
    assert set(found) == (nearest if least <= most else set())
    assert found == sorted(found, key=lambda near: (not is_common_typo(near, word), near))


@pytest.mark.parametrize(
    ("meant", "written", "common"),
    [
        ("message", "mesage", True),
        ("message", "essage", True),
        ("message", "messag", True),
        ("message", "emssage", True),
        ("message", "messsage", True),
        ("message", "messsge", True),
        ("message", "messazge", True),
        ("message", "messpge", False),
        ("message", "xmessage", False),
        ("message", "mesge", False),
    ],
)
def test_common_typos(meant: str, written: str, common: bool) -> None:
    assert is_common_typo(meant, written) is common


@given(vocabulary_words)
def test_words_come_most_frequent_first(known: list[str]) -> None:
    frequencies = {word: place for place, word in enumerate(known)}
    begun = Vocabulary(frequencies).with_prefix("a")
    assert begun == sorted(
        (word for word in known if word.startswith("a")), key=lambda word: -frequencies[word]
    )


def test_forgets_and_answers_alike() -> None:
    vocabulary = Vocabulary({"calendar": 1})
    letters = "abcdefghijklmnopqrstuvwxyz"
    strange = [f"{a}{b}qqqq" for a in letters for b in letters]
    assert [vocabulary.correct(word) for word in strange] == [None] * len(strange)
    assert vocabulary.correct("calndar") == Correction("typo", ("calendar",), likely=True)
