"""What a tool answers: each kind of answer, placeholders, progress."""

import json
import re

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mcpzip_fakes.answer import Answer, Refusal, Step, fill

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def result(answer: Answer, arguments: dict[str, object] | None = None, call: int = 1) -> object:
    given_arguments = arguments or {}
    told = answer.result(given_arguments, msgspec.json.encode(given_arguments), call)
    return told if isinstance(told, bytes) else json.loads(msgspec.json.encode(told))


def text(said: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(), text("ok")),
        (Answer(echo=True), text('{"b":1,"a":[2]}')),
        (Answer(text="hi {b}"), text("hi {b}")),
        (Answer(text="hi {b}, {c}!", fill=True), text("hi 1, !")),
        (Answer(text="call {#}", fill=True), text("call 3")),
        (Answer(json='{"x": [1.5, null]}'), text('{"x":[1.5,null]}')),
        (
            Answer(json={"x": "{a}", "y": "{c}", "z": "<{b}>"}, fill=True),
            text('{"x":[2],"y":null,"z":"<1>"}'),
        ),
        (Answer(size=4), text("xxxx")),
        (Answer(text="no", is_error=True), {**text("no"), "isError": True}),
        (Answer(structured='{"n": 1}'), {**text('{"n":1}'), "structuredContent": {"n": 1}}),
        (Answer(structured='"done"', text="d"), {**text("d"), "structuredContent": "done"}),
        (Answer(content='[{"type": "hologram"}]'), {"content": [{"type": "hologram"}]}),
        (Answer(raw='{"content": [],  "n": 1.0}'), b'{"content": [],  "n": 1.0}'),
    ],
)
def test_each_kind_of_answer(answer: Answer, expected: object) -> None:
    assert result(answer, {"b": 1, "a": [2]}, call=3) == expected


def test_echo_gives_back_the_very_text_of_the_arguments() -> None:
    assert Answer(echo=True).result({}, b'{ "n": 1.0 }', 1) == text('{ "n": 1.0 }')


@given(JSON)
def test_a_lone_place_becomes_the_argument_itself(value: object) -> None:
    assert fill({"x": ["{v}"]}, {"v": value}) == {"x": [value]}


@given(JSON)
def test_without_places_nothing_changes(value: object) -> None:
    bare = json.loads(json.dumps(value).replace("{#}", "#"))
    assume(not re.search(r"\{[\w.]+\}", json.dumps(bare, ensure_ascii=False)))
    assert fill(bare, {}) == bare


@given(st.text())
def test_braces_that_hold_no_name_are_left_alone(said: str) -> None:
    template = "{ " + said.replace("{", "").replace("}", "") + "}"
    assert fill(template, {said: 1}) == template


def test_a_number_of_steps_is_spread_over_the_delay() -> None:
    steps = Answer(progress=4, delay=2.0).steps()
    assert steps == tuple(Step(progress=n, total=4, wait=0.5) for n in (1, 2, 3, 4))
    assert Answer(delay=2.0).steps() == ()


def test_an_answer_survives_being_saved() -> None:
    answer = Answer(
        structured='"s"', error=Refusal(code=-1, data='{"a": null}'), progress=(Step(progress=1),)
    )
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer
