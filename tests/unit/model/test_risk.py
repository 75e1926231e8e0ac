"""The classes of tools: the specification's defaults, and what a person says instead."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.risk import RISK_CLASSES, WORST, Risk, overridden, risk_of

HINTS = ("readOnlyHint", "destructiveHint", "openWorldHint")


def of(annotations: Any) -> Risk:
    return risk_of(json.dumps({"name": "a", "annotations": annotations}).encode())


@pytest.mark.parametrize(
    ("annotations", "classes"),
    [
        ({}, ("writes", "destroys", "reaches_out")),
        (None, ("writes", "destroys", "reaches_out")),
        ({"readOnlyHint": True}, ("reads", "reaches_out")),
        ({"readOnlyHint": True, "openWorldHint": False}, ("reads",)),
        ({"readOnlyHint": True, "destructiveHint": True}, ("reads", "reaches_out")),
        ({"destructiveHint": False}, ("writes", "reaches_out")),
        ({"destructiveHint": False, "openWorldHint": False}, ("writes",)),
        ({"idempotentHint": True, "openWorldHint": False}, ("writes", "destroys")),
    ],
)
def test_hints_have_the_defaults_of_the_specification(annotations: Any, classes: tuple[str, ...]) -> None:
    assert of(annotations).classes == classes


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b'{"annotations":' + b"[" * 100_000])
def test_what_cannot_be_read_may_do_the_worst(raw: bytes) -> None:
    assert risk_of(raw) == WORST


@given(st.dictionaries(st.sampled_from(HINTS), st.sampled_from([True, False, None, 1, 0, "true", [], {}])))
def test_only_true_and_false_make_a_tool_milder(hints: dict[str, Any]) -> None:
    risk = of(hints)
    assert ("reads" in risk.classes) == (hints.get("readOnlyHint") is True)
    if hints.get("readOnlyHint") is not True:
        assert ("destroys" in risk.classes) == (hints.get("destructiveHint") is not False)
    assert risk.reaches_out == (hints.get("openWorldHint") is not False)


@given(
    st.sampled_from(["reads", "writes", "destroys"]), st.booleans(), st.sets(st.sampled_from(RISK_CLASSES))
)
def test_a_person_has_the_last_word(effect: Any, reaches_out: bool, said: set[Any]) -> None:
    risk = overridden(Risk(effect, reaches_out), tuple(each for each in RISK_CLASSES if each in said))
    assert risk.reaches_out == ("reaches_out" in said)
    named = [each for each in ("reads", "writes", "destroys") if each in said]
    assert risk.effect == (named[-1] if named else effect)
