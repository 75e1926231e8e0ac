"""The lexicon: other languages come to the English of tools, and English is left alone."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import lexicon
from mcpzip.search.lexicon import INFLECTIONS, NOTHING, gloss, gloss_text, normalized, synonyms
from mcpzip.search.tokenizer import STOP_WORDS, is_bigram, words
from mcpzip.search.verbs import FAMILIES

_LANGUAGES = """
de fr es pt it nl pl ru uk tr ar he hi zh ja ko vi id
"""
LANGUAGES = _LANGUAGES.split()
SURE = [language for language in LANGUAGES if language not in "nl pl uk tr he hi vi id"]
HEADER, *ROWS = [line.split("\t") for line in Path(lexicon._FILE).read_text(encoding="utf-8").splitlines()]
KEYS = [
    (language, key, row[0])
    for row in ROWS
    for language, cell in zip(HEADER[1:], row[1:], strict=False)
    for key in cell.split(",")
    if cell
]


def said(text: str) -> list[str]:
    """What ``text`` says in English, as a search puts it together."""
    found = gloss_text(text).split()
    for word, _ in words(text):
        if word.isascii():
            meaning = gloss(word)
            found += [word] if meaning is None else meaning
    return found


REQUESTS = [
    ("schicke eine Nachricht an das Team", "send message team"),
    ("Wettervorhersage für morgen in Berlin", "weather forecast tomorrow berlin"),
    ("lege einen neuen Kalendereintrag an", "new calendar"),
    ("Rechnungen des Kunden auflisten", "invoice customer list"),
    ("übersetzt diesen Text", "translate text"),
    ("alle offenen Aufgaben anzeigen", "open task show"),
    ("envoie un message à l'équipe", "send message team"),
    ("montre-moi les vols pour Rome", "show flight"),
    ("supprimez les fichiers du dossier", "delete file folder"),
    ("crée une réunion demain", "create meeting tomorrow"),
    ("busca vuelos baratos a Madrid", "search flight cheap madrid"),
    ("envía un correo a Juan", "send email juan"),
    ("buscando archivos en la carpeta", "search file folder"),
    ("traduza este texto para inglês", "translate text english"),
    ("apagar os arquivos da pasta", "delete file folder"),
    ("mostra i file nella cartella", "show file folder"),
    ("che tempo fa, previsioni meteo di domani", "forecast weather tomorrow"),
    ("prenota un albergo a Roma", "book hotel roma"),
    ("stuur een bericht naar het team", "send message team"),
    ("znajdź loty do Londynu", "find flight"),
    ("yarın hava durumu", "tomorrow weather"),
    ("отправь сообщение в slack", "send message slack"),
    ("покажи погоду в Москве на завтра", "show weather tomorrow"),
    ("найди ближайшие рестораны", "find nearby restaurant"),
    ("создай новую задачу в проекте", "create new task project"),
    ("какой курс валют сегодня", "exchange rate today"),
    ("надішли повідомлення команді", "send message team"),
    ("أرسل رسالة إلى فريقي", "send message team"),
    ("ابحث عن رحلات جوية رخيصة", "search flight cheap"),
    ("ما هو سعر الصرف اليوم", "exchange rate today"),
    ("احذف الملفات من المجلد", "delete file folder"),
    ("שלח הודעה לצוות", "send message team"),
    ("दिल्ली का मौसम दिखाओ", "weather show"),
    ("今天北京的天气怎么样", "today weather"),
    ("帮我给张三发一封邮件", "send email"),
    ("查询上海到北京的火车票", "query train ticket"),
    ("把这段文字翻译成英文", "text translate english"),
    ("查詢資料庫", "query database"),
    ("在GitHub上创建一个新的议题", "create new issue"),
    ("明日の東京の天気を教えて", "tomorrow weather"),
    ("未読メールを検索してください", "unread email search"),
    ("ファイルをアップロードしたい", "file upload"),
    ("오늘 서울 날씨 알려줘", "today weather"),
    ("읽지 않은 메일을 보여줘", "unread email show"),
    ("파일을 삭제해 주세요", "file delete"),
    ("gửi tin nhắn, thời tiết hôm nay", "message weather today"),
]


@pytest.mark.parametrize(("request_", "english"), REQUESTS)
def test_a_request_says_in_english_what_it_asks_for(request_: str, english: str) -> None:
    assert set(english.split()) <= set(said(request_))


@pytest.mark.parametrize("text", ["请帮我", "お願いします", "해주세요", "пожалуйста", "من فضلك", "कृपया"])
def test_polite_wrapping_says_nothing(text: str) -> None:
    assert gloss_text(text) == ""


@pytest.mark.parametrize("word", ["bitte", "der", "une", "para", "della", "het", "のを", "пожалуйста"])
def test_a_word_that_means_nothing_is_known_to(word: str) -> None:
    assert gloss(word) == () or gloss_text(word) == ""


FALSE_FRIENDS = """
die list main note son table station date pain chat coin four sale location journal brief gift rat tag bald
art handy see war red once sin data pan come fare more dove estate do no as com map slot air on site resume
active present press places posts plans ports tells paste calls controls records module guide legend college
fonts
"""


@pytest.mark.parametrize("word", FALSE_FRIENDS.split())
def test_an_english_word_is_not_taken_for_a_foreign_one(word: str) -> None:
    assert gloss(word) in (None, (word,))


@pytest.mark.parametrize("word", sorted(STOP_WORDS | {w for its in FAMILIES.values() for w in its.split()}))
def test_the_verbs_of_tools_and_english_function_words_keep_their_meaning(word: str) -> None:
    meaning = gloss(word)
    assert meaning is None or word == "analyse" or word in (*meaning, *synonyms(meaning[0]))


def test_names_and_nonsense_are_not_known() -> None:
    assert [gloss(word) for word in ("slack", "kubernetes", "qwertz", "", "a" * 10_000)] == [None] * 5


def test_compounds_say_both_parts() -> None:
    assert gloss("wettervorhersage") == ("weather", "forecast")
    assert gloss("kundendaten") == ("customer", "data")


def test_a_concept_has_other_english_words() -> None:
    assert "mail" in synonyms("email")
    assert synonyms("nothing of the kind") == ()


@given(st.text())
def test_any_text_is_read_into_ascii_words(text: str) -> None:
    english = gloss_text(text)
    assert english.isascii()
    assert gloss_text(english) == ""
    assert english == " ".join(english.split())


@given(st.text(max_size=60))
def test_any_word_has_english_words_or_none(word: str) -> None:
    meaning = gloss(word)
    assert meaning is None or all(each.isascii() and each.isalpha() for each in meaning)


@given(st.lists(st.sampled_from([key for language, key, _ in KEYS if language in ("zh", "ja", "ru", "ar")])))
def test_keys_between_marks_are_read_one_by_one(keys: list[str]) -> None:
    expected = [english for key in keys for english in gloss_text(key).split()]
    assert gloss_text(" / ".join(keys)).split() == expected


class Counted(dict[str, tuple[str, ...]]):
    """Meanings that count how often they are asked."""

    asked = 0

    def get(self, key: str, default: object = None) -> tuple[str, ...] | None:
        self.asked += 1
        return super().get(key)


@pytest.mark.parametrize("part", ["查询天气", "龘", "한국말", "слово ", "é à "])
def test_reading_takes_time_linear_in_the_text(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    known = lexicon._lexicon()
    for times in (50, 100, 200):
        meanings = Counted(known.glosses)
        counting = lexicon._Lexicon(
            meanings, known.inflected, known.max_unspaced, known.phrases, known.synonyms
        )
        monkeypatch.setattr(lexicon, "_lexicon", lambda counting=counting: counting)
        lexicon._gloss.cache_clear()
        gloss_text(part * times)
        asked.append(meanings.asked)
    assert all(more <= 2 * less + 100 for less, more in pairwise(asked))


def test_the_file_has_its_columns_and_enough_concepts() -> None:
    assert HEADER[0] == "en"
    assert HEADER[1:] == LANGUAGES
    assert len(ROWS) >= 450
    assert all(len(row) <= len(HEADER) for row in ROWS)
    for language in SURE:
        assert len({english for its, _, english in KEYS if its == language}) > 420, language


def test_the_english_is_plain_words_and_stands_once() -> None:
    english = [row[0] for row in ROWS]
    assert len(set(english)) == len(english)
    assert english.count(NOTHING) == 1
    assert all(
        w.isascii() and w.islower()
        for row in english
        if row != NOTHING
        for w in row.replace(",", " ").split()
    )


def test_a_key_stands_once_in_its_language() -> None:
    pairs = [(language, key) for language, key, _ in KEYS]
    assert (
        sorted({pair for pair in pairs if pairs.count(pair) > 1} if len(pairs) != len(set(pairs)) else ())
        == []
    )


def test_what_means_nothing_somewhere_means_nothing_elsewhere() -> None:
    nothing = {key for _, key, english in KEYS if english == NOTHING}
    assert [key for _, key, english in KEYS if english != NOTHING and key in nothing] == []


def test_keys_are_spelled_as_they_are_looked_up() -> None:
    for language, key, _ in KEYS:
        assert normalized(key) == key, (language, key)
        if not any(map(is_bigram, key)):
            assert " ".join(word for word, _ in words(key)) == key, (language, key)


def test_no_key_is_an_english_stop_word_or_shorter_than_two_latin_letters() -> None:
    latin = [(language, key) for language, key, _ in KEYS if key.isascii()]
    assert [pair for pair in latin if len(pair[1]) < 2 or pair[1] in STOP_WORDS] == []


def test_inflected_languages_are_columns() -> None:
    assert set(INFLECTIONS) <= set(LANGUAGES)
