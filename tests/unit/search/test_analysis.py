"""What a term is worth in a tool: more for more of it, less among noise, and nothing beside it counts."""

import pytest
from helpers.search_tools import catalogs, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.analysis import FIELD_WEIGHTS, Analyzer

TEXTS = ("title", "description", "parameters", "values", "parameter_descriptions")
# Words that share no stem; a tool's own name has none of them.
WORDS = ["river", "mountain", "forest", "island", "desert", "valley", "glacier", "canyon"]
texts = st.lists(st.sampled_from(WORDS), max_size=12)
fields = st.dictionaries(st.sampled_from(TEXTS), texts)


def entry(by_field: dict[str, list[str]], name: str = "thing") -> Entry:
    """A tool with these words in these fields."""
    said = {field: by_field.get(field, []) for field in TEXTS}
    parameter = {"enum": said["values"], "description": " ".join(said["parameter_descriptions"])}
    properties: dict[str, object] = {"_".join(said["parameters"]) or "?": parameter}
    return tool(
        "s",
        name,
        " ".join(said["description"]),
        title=" ".join(said["title"]),
        inputSchema={"properties": properties},
    )


def worth(entry: Entry, word: str) -> float:
    return Analyzer(None).analyze(entry).term_weights.get(word, 0.0)


@given(fields, st.sampled_from(TEXTS), st.sampled_from(WORDS))
def test_one_more_of_a_term_is_worth_more(by_field: dict[str, list[str]], field: str, word: str) -> None:
    more = by_field | {field: [*by_field.get(field, []), word]}
    before, after = worth(entry(by_field), word), worth(entry(more), word)
    assert after >= before - 1e-12
    assert 0.0 < after < 1.0


@given(fields, st.sampled_from(TEXTS), st.lists(st.sampled_from(WORDS)), st.sampled_from(WORDS))
def test_more_noise_is_worth_no_more(
    by_field: dict[str, list[str]], field: str, noise: list[str], word: str
) -> None:
    longer = by_field | {field: [*by_field.get(field, []), *(other for other in noise if other != word)]}
    assert worth(entry(longer), word) <= worth(entry(by_field), word) + 1e-12


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), st.sampled_from(WORDS))
def test_a_term_more_in_the_name_counts_too(name: list[str], word: str) -> None:
    before, after = entry({}, "_".join(name)), entry({}, "_".join([*name, word]))
    assert worth(after, word) >= worth(before, word)
    assert all(worth(after, other) <= worth(before, other) for other in name if other != word)


@given(fields)
def test_the_order_of_words_changes_no_worth(by_field: dict[str, list[str]]) -> None:
    turned = {field: words[::-1] for field, words in by_field.items()}
    left, right = Analyzer(None).analyze(entry(by_field)), Analyzer(None).analyze(entry(turned))
    assert left.term_weights == pytest.approx(right.term_weights)


@given(catalogs)
def test_a_tool_is_analysed_alike_whatever_came_before(made: list[Entry]) -> None:
    experienced = Analyzer(None)
    assert [experienced.analyze(each) for each in made] == [Analyzer(None).analyze(each) for each in made]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("name", "title"),
        ("title", "description"),
        ("description", "parameters"),
        ("parameters", "parameter_descriptions"),
        ("parameter_descriptions", "values"),
    ],
)
def test_a_word_is_worth_more_where_it_says_more(better: str, worse: str) -> None:
    def one_word_in(field: str) -> float:
        return FIELD_WEIGHTS[field].word_weight(round(FIELD_WEIGHTS[field].typical_length))

    assert one_word_in(better) > one_word_in(worse)


def test_an_analysis() -> None:
    found = Analyzer(None).analyze(
        tool(
            "crm",
            "get_the_contacts",
            "All contacts of a CRM",
            inputSchema={"properties": {"kind": {"enum": ["private"]}}},
        )
    )
    assert found.name_terms == ("get", "the", "contact")
    assert set(found.term_weights) == {"get", "the", "contact", "crm", "kind", "privat"}
    assert "contacts" in found.words
    assert "of" not in found.words
    assert found.vector is None


@given(fields)
def test_the_parts_by_field_add_up_to_the_whole(by_field: dict[str, list[str]]) -> None:
    made = entry(by_field, "river_valley")
    analyst = Analyzer(None)
    rarities = {word: 1.0 + place for place, word in enumerate(WORDS)}
    whole = analyst.analyze(made).term_weights
    expected = sum(rarities[word] * whole.get(word, 0.0) for word in WORDS)
    found = analyst.by_field(made, rarities)
    assert sum(found.values()) == pytest.approx(expected)
    assert {field for field, words in by_field.items() if words} <= {*found, "name"}
