"""The difference between two texts: nothing is lost, and what differs looks different."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.ui import text_diff as module
from mcpzip.ui.text_diff import Line, lines_of, operations, text_diff

texts = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "  b", "<U+200B>", "\u200b", "\t{"]), st.sampled_from(["\n", "\r\n", "\r"])
    ),
    max_size=12,
).map(lambda parts: "".join(body + end for body, end in parts))


def shown(before: str, after: str) -> list[tuple[str, str]]:
    """The sign and the text of each line."""
    signs = {"same": " ", "added": "+", "removed": "-"}
    found = text_diff(before, after)
    return [(signs[line.kind], text_of(line)) for hunk in found.hunks for line in hunk]


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line.text)


def test_a_change_is_shown_with_the_lines_around_it() -> None:
    before = "".join(f"{number}\n" for number in range(20))
    after = before.replace("10\n", "ten\neleven\n")
    assert shown(before, after) == [
        *((" ", f"{number}") for number in (7, 8, 9)),
        ("-", "10"),
        ("+", "ten"),
        ("+", "eleven"),
        *((" ", f"{number}") for number in (11, 12, 13)),
    ]
    found = text_diff(before, after)
    assert (found.added, found.removed) == (2, 1)
    assert [(line.before, line.after) for line in found.hunks[0][2:6]] == [
        (10, 10),
        (11, None),
        (None, 11),
        (None, 12),
    ]


def test_changes_far_apart_are_in_groups() -> None:
    before = "".join(f"{number}\n" for number in range(40))
    found = text_diff(before, before.replace("5\n", "x\n").replace("30\n", "y\n"))
    assert len(found.hunks) == 3  # 5, 15, and 25 with 30 and 35, which are near each other


def test_what_differs_in_a_line_is_marked() -> None:
    (hunk,) = text_diff('{"a": 1}\n', '{"a": 22}\n').hunks
    assert [line.text for line in hunk] == [
        [('{"a": ', False), ("1", True), ("}", False)],
        [('{"a": ', False), ("22", True), ("}", False)],
    ]


def test_characters_that_nobody_sees_are_shown() -> None:
    assert shown("a\n", "a\u200b\n") == [("-", "a"), ("+", "a<U+200B>")]
    assert shown("a<U+200B>\n", "a\u200b\n") == [("-", "a<U+003C>U+200B>"), ("+", "a<U+200B>")]
    assert shown("a\n", "a\r\n") == [("-", "a"), ("+", "a<U+000D><U+000A>")]
    assert shown("a\n", "a") == [("-", "a"), ("+", "a (no line break at the end)")]
    assert shown("\ta\r\n", "\tb\r\n") == [("-", "\ta"), ("+", "\tb")]


def test_few_changes_of_a_large_text_are_few() -> None:
    before = "".join(f"{number}\n}}\n" for number in range(2_000))
    after = before.replace("\n3\n", "\nthree\n").replace("\n1990\n", "\n")
    found = text_diff(before, after)
    assert (found.added, found.removed, len(found.hunks)) == (1, 2, 2)


def test_a_large_text_is_compared_in_bounds() -> None:
    before = "".join(f"{number}\n" for number in range(2_000))
    after = "".join(f"{number} \n" for number in range(2_000))
    found = text_diff(before, after)
    assert (found.added, found.removed) == (2_000, 2_000)


@given(texts, texts, st.booleans())
def test_the_operations_make_the_one_out_of_the_other(before: str, after: str, large: bool) -> None:
    old, new = lines_of(before), lines_of(after)
    assert "".join(old) == before
    made: list[str] = []
    at = new_at = 0
    with patch.object(module, "_WORK", 4 if large else 1_000_000):
        found = operations(old, new)
    for kind, begin, end, new_begin, new_end in found:
        assert (begin, new_begin) == (at, new_at)
        at, new_at = end, new_end
        if kind == "equal":
            assert old[begin:end] == new[new_begin:new_end]
        made += old[begin:end] if kind == "equal" else new[new_begin:new_end]
    assert (at, new_at) == (len(old), len(new))
    assert made == new


@given(texts, texts)
def test_texts_that_differ_look_different(before: str, after: str) -> None:
    found = shown(before, after)
    assert bool(found) == (before != after)
    one, other = ([text for sign, text in found if sign != hidden] for hidden in "+-")
    assert before == after or one != other
