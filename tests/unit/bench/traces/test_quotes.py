"""What a model quotes of results."""

import json

from helpers.traces import conversation, raw
from hypothesis import given
from hypothesis import strategies as st

from bench.traces.quotes import SPAN, Unescaped, leaves, readings
from bench.traces.trace import Call, Recorder

SENTENCE = "The third order was paid on Monday."
FILL = "nothing to see here, only 0123456789; " * 5


def quoted(*steps: str | bytes) -> list[list[str]]:
    """The texts that are quoted of each result: of spans that overlap one text."""
    found = []
    for turn in readings(conversation(*steps)):
        for each in turn:
            texts: list[str] = []
            last = -2
            for offset, span in zip(each.quoted, each.spans, strict=True):
                if offset == last + 1:
                    texts[-1] += span[-1]
                else:
                    texts.append(span)
                last = offset
            found.append(texts)
    return found


def test_what_the_model_repeats_later_is_quoted() -> None:
    assert quoted("", raw(FILL + SENTENCE + FILL), f"I see:{SENTENCE}", raw("x"), "End.") == [[SENTENCE], []]


def test_what_stood_before_is_not_quoted() -> None:
    assert quoted(f"I expect: {SENTENCE}", raw(FILL + SENTENCE), SENTENCE) == [[]]


def test_the_first_of_two_results_is_quoted() -> None:
    assert quoted("", raw(SENTENCE), "Again.", raw(SENTENCE), SENTENCE) == [[SENTENCE], []]


def test_what_stood_before_counts_on_demand_unless_the_model_said_it() -> None:
    def number(*steps: str | bytes) -> list[int]:
        found = readings(conversation(*steps), again=True)
        return [len(each.spans) for turn in found for each in turn]

    every = len(SENTENCE) - SPAN + 1
    assert number("", raw(SENTENCE), "Again.", raw(SENTENCE), SENTENCE) == [every, every]
    assert number(SENTENCE, raw(SENTENCE), "Again.", raw(SENTENCE), SENTENCE) == [0, 0]


def test_of_a_text_that_a_result_repeats_each_place_is_quoted() -> None:
    assert quoted("", raw(SENTENCE + FILL + SENTENCE), SENTENCE) == [[SENTENCE, SENTENCE]]


def test_a_short_text_and_a_line_of_dashes_are_no_quotation() -> None:
    short = SENTENCE[: SPAN - 1]
    assert quoted("", raw(f"{short}|{'-' * 80}"), f"{short}. {'-' * 80}") == [[]]


def test_a_value_of_arguments_is_an_answer() -> None:
    told = Recorder()
    for number in range(2):
        told.call(str(number), Call("mail__send", json.dumps({"to": [{"body": SENTENCE}]} if number else {})))
        told.result(str(number), raw(FILL + SENTENCE))
    [_, [first]] = readings(told.trace("t"))
    assert first.spans[0] == SENTENCE[:SPAN]


def test_json_is_compared_without_its_escapes() -> None:
    text = 'He said "no" –\nand went away – at once.'
    value = json.dumps([FILL, text])
    [[], [found]] = readings(conversation("", raw(value), text))
    assert found.shown == value
    assert found.quoted[0] == value.index("He said")
    assert value[found.quoted[-1] :].endswith('at once."]')
    assert Unescaped(value, is_json=True).text.count(text) == 1


@given(st.text(), st.text(), st.booleans())
def test_every_character_has_an_offset_in_the_escaped_text(before: str, after: str, is_ascii: bool) -> None:
    escaped = json.dumps(before + "ü" + after, ensure_ascii=is_ascii)
    plain = Unescaped(escaped, is_json=True)
    assert plain.text[1:-1].encode("utf-16", "surrogatepass").decode("utf-16") == before + "ü" + after
    start = escaped.index('"')
    assert plain.original(0) == start
    offsets = [plain.original(number) for number in range(len(plain.text))]
    assert offsets == sorted(set(offsets))
    assert plain.original(len(plain.text) - 1) == len(escaped) - 1


def test_a_text_that_is_no_json_has_no_escapes() -> None:
    assert Unescaped(r"a\nb", is_json=False).text == r"a\nb"


def test_the_texts_of_arguments() -> None:
    assert leaves('{"a": "x", "b": [1, {"c": "y"}], "d": null}') == ["x", "y"]
    assert leaves("{broken") == ["{broken"]
