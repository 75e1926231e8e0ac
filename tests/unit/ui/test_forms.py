"""A schema as a form, and a form as arguments."""

import json
from typing import Any

import pytest
from helpers.hostile_texts import writable
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.ui.forms import PREFIX, WHOLE, arguments_of, fields_for
from mcpzip.ui.rendering import shown

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say"},
        "when": {"type": "string", "format": "date"},
        "count": {"type": "integer"},
        "loud": {"type": "boolean"},
        "tone": {"enum": ["kind", 'so "so"', 3, None]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
}


def sent(schema: dict[str, Any] = SCHEMA, **given: str) -> Any:
    """The arguments that a form filled in so stands for."""
    filled = {name if name == WHOLE else PREFIX + name: text for name, text in given.items()}
    return json.loads(arguments_of(fields_for(schema, filled), filled))


def test_each_parameter_has_its_kind_of_field() -> None:
    fields = {field.name: field for field in fields_for(SCHEMA, {})}
    assert {name: field.kind for name, field in fields.items()} == {
        "text": "long",
        "when": "text",
        "count": "number",
        "loud": "choice",
        "tone": "choice",
        "tags": "json",
    }
    assert [name for name, field in fields.items() if field.required] == ["text"]
    assert fields["text"].about == "What to say"
    assert fields["tone"].choices == ('"kind"', '"so \\"so\\""', "3", "null")


def test_values_have_the_types_of_the_schema() -> None:
    filled = {"text": "a", "count": " 3 ", "loud": "true", "tone": '"so \\"so\\""', "tags": '["x"]'}
    assert sent(**filled) == {"text": "a", "count": 3, "loud": True, "tone": 'so "so"', "tags": ["x"]}


def test_numbers_stay_as_they_were_written() -> None:
    field = fields_for(SCHEMA, {PREFIX + "count": "12345678901234567890.0"})
    filled = {PREFIX + "text": "", PREFIX + "count": "12345678901234567890.0"}
    assert arguments_of(field, filled) == b'{"text":"","count":12345678901234567890.0}'


def test_what_is_empty_is_not_sent_unless_it_is_a_text_that_is_required() -> None:
    assert sent() == {"text": ""}
    assert sent(when="", count=" ", loud="", tone="", tags="") == {"text": ""}


def test_a_line_of_a_browser_ends_as_everywhere() -> None:
    assert sent(text="a\r\nb") == {"text": "a\nb"}


def test_all_arguments_as_json() -> None:
    assert sent(text="a", json='{"other": 1}') == {"other": 1}


@pytest.mark.parametrize(
    "given", [{"json": "[]"}, {"json": "x"}, {"count": "three"}, {"tags": "[" * 100_000}, {"loud": "yes"}]
)
def test_what_is_not_json_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentsError):
        sent(**given)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "json", "form_token"]), writable))
def test_a_form_is_arguments_or_an_error(given: dict[str, str]) -> None:
    filled = {PREFIX + name: text for name, text in given.items()}
    try:
        found = json.loads(arguments_of(fields_for(SCHEMA, filled), filled))
    except InvalidArgumentsError:
        return
    assert found.keys() <= SCHEMA["properties"].keys()
    assert "text" in found


@pytest.mark.parametrize(
    "properties", [None, [], "x", {"a": None}, {"a": {"type": ["string", "null"]}}, {"a": {"enum": []}}]
)
def test_a_strange_schema_has_a_form(properties: Any) -> None:
    fields = fields_for({"properties": properties, "required": [1, None]}, {})
    assert all(field.kind == "json" for field in fields)


def test_too_many_parameters_are_written_as_json() -> None:
    assert fields_for({"properties": {str(number): {} for number in range(41)}}, {}) == []


@given(st.text(), st.text())
@example("n\x00\n\u202e", "\xa0\u200b\U000e0041")
@example("n" * 5_000, "c" * 5_000)
def test_names_and_choices_come_back_as_they_were(name: str, choice: str) -> None:
    """Though a page shows no character that hides, reorders or controls."""
    (field,) = fields_for({"properties": {name: {"enum": [choice]}}}, {})
    filled = {str(shown(field.field)): str(shown(field.choices[0]))}
    assert not set("".join((*filled, *filled.values()))) & set("\x00\x1b\u202e\u200b\U000e0041")
    assert json.loads(arguments_of([field], filled)) == {name: choice}
    assert fields_for({"properties": {name: {"type": "string"}}}, {field.field: choice})[0].value == choice


def test_a_schema_with_much_text_is_written_as_json() -> None:
    choices = {"enum": [f"{number}" * 200 for number in range(100)]}
    assert fields_for({"properties": {str(number): choices for number in range(20)}}, {}) == []
