"""What a word is: the table, and the properties that hold for every text."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpzip.search.tokenizer import STOP_WORDS, by_rules, content_words, fold, is_bigram, term_of, words


def tokenize(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """The terms of ``text``. Stop words are left out unless nothing else is there, or they are kept."""
    pairs = words(text)
    return [term for _, term in (pairs if keep_stop_words else content_words(pairs))]


TABLE = [
    ("snake_case_name", ["snake", "case", "name"]),
    ("SCREAMING_SNAKE", ["scream", "snake"]),
    ("camelCaseName", ["camel", "case", "name"]),
    ("PascalCaseName", ["pascal", "case", "name"]),
    ("kebab-case-name", ["kebab", "case", "name"]),
    ("dotted.path/with/slashes", ["dot", "path", "slash"]),
    ("HTTPServer", ["http", "server"]),
    ("parseJSONText", ["par", "json", "text"]),
    ("OAuth2", ["oauth", "2"]),
    ("getOAuthToken", ["get", "oauth", "token"]),
    ("iPhone", ["iphon"]),
    ("iOS", ["io"]),
    ("userIDs", ["user", "id"]),
    ("base64", ["base", "64"]),
    ("3d-model", ["3", "d", "model"]),
    ("the user's files", ["user", "file"]),
    ("I don't", ["i", "dont"]),
    ("messages messaging message", ["messag", "messag", "messag"]),
    ("Crème Brûlée", ["creme", "brule"]),
    ("Ærøskøbing", ["aeroskob"]),
    ("STRASSE straße", ["strass", "strass"]),
    ("ＦＵＬＬ　ｗｉｄｔｈ", ["full", "width"]),
    ("ﬁle", ["file"]),
    ("Поиск ФАЙЛОВ", ["поиск", "файлов"]),
    ("東京都", ["東京", "京都"]),
    ("天", ["天"]),
    ("天气API查询", ["天气", "api", "查询"]),
    ("カレンダー", ["カレ", "レン", "ンダ", "ダー"]),
    ("ｶﾚﾝ", ["カレ", "レン"]),
    ("한국어", ["한국", "국어"]),
    ("مُحَمَّد", ["محمد"]),
    ("please send it to the team", ["send", "team"]),
    ("", []),
    ("?! — …", []),
]


@pytest.mark.parametrize(("text", "terms"), TABLE, ids=[text for text, _ in TABLE])
def test_table(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


spelled = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9), min_size=1, max_size=5)


@given(spelled)
@example(["state", "machine"])
@example(["any", "ny"])
def test_blind_to_case_and_separators(parts: list[str]) -> None:
    camel = "".join(part.capitalize() for part in parts)
    ways = ["_".join(parts), "-".join(parts), ".".join(parts), "/".join(parts), "::".join(parts), camel]
    ways += [parts[0] + camel[len(parts[0]) :], " ".join(parts).title(), "_".join(parts).upper()]
    assert {way: tokenize(way) for way in ways} == dict.fromkeys(ways, tokenize(" ".join(parts)))


@settings(max_examples=500)
@given(st.text() | st.text(st.characters(categories=("L", "M", "N"))))
@example("ANyOF")  # "any" was stemmed, its stem was no stop word, and the second pass dropped "of" alone
@example("ŉ ΐ ǰ ﷺ")
def test_idempotent_on_its_own_output(text: str) -> None:
    once = tokenize(text)
    assert tokenize(" ".join(once)) == once


@given(st.text())
def test_keeping_stop_words_is_idempotent_too(text: str) -> None:
    once = tokenize(text, keep_stop_words=True)
    assert tokenize(" ".join(once), keep_stop_words=True) == once


@given(st.lists(st.sampled_from(sorted(STOP_WORDS)), min_size=1, max_size=6))
def test_stop_words_never_empty_a_query(parts: list[str]) -> None:
    assert tokenize(" ".join(parts)) == parts


@given(st.lists(st.sampled_from(sorted(STOP_WORDS)), max_size=4))
def test_stop_words_never_hide_another_word(parts: list[str]) -> None:
    assert tokenize(" ".join([*parts, "calendar"])) == ["calendar"]


@given(st.text())
def test_a_term_is_what_its_word_is_indexed_as(text: str) -> None:
    assert all(term == (word if is_bigram(word) else term_of(word)) for word, term in words(text))


@given(st.text("aAbBsSé'.-_(1", max_size=8) | st.text(max_size=8))
def test_the_short_way_for_plain_words_gives_what_the_rules_give(text: str) -> None:
    assert words(text) == [pair for written in text.split() for pair in by_rules(written)]


@given(st.text(max_size=20), st.text(max_size=20))
def test_words_do_not_reach_over_white_space(left: str, right: str) -> None:
    assert words(f"{left} {right}") == words(left) + words(right)


@pytest.mark.parametrize("unit", ["a", "A", "aB", "ABs", "é", "東", "1a", "A\u0301", "'", "ŉ", "\u0301"])
def test_a_megabyte_without_white_space_is_a_text_like_any_other(unit: str) -> None:
    terms = tokenize(unit * 200_000)
    assert all(len(term) <= 64 for term in terms)
    assert tokenize(" ".join(terms[:50])) == terms[:50]


@pytest.mark.parametrize("unit", ["\ufdfa", "\ufdfa ", "\u3316", "\u0301\u0316"])
def test_a_text_that_grows_when_it_is_folded_has_no_more_words_than_another(unit: str) -> None:
    """One letter may stand for 18, and to order n marks takes n² steps: 20,000 of either took a second."""
    text = unit * 10_000
    assert sum(len(word) for word, _ in words(text)) <= 8 * len(text)  # a bigram repeats a character
    assert len(fold(text)) <= 4 * len(text)
    assert len(fold("a" + "\u0301\u0316" * 10_000)) <= 31
