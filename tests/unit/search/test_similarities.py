"""Similarities, and that leaving out documents changes no ranking."""

import random
from collections.abc import Sequence

import pytest
from helpers.search_tools import index_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import Filters, fusion
from mcpzip.search.fusion import TierScores, rank
from mcpzip.search.query import analyze_query
from mcpzip.search.similarities import Similarities

numbers = st.lists(st.floats(-1.0, 1.0, allow_subnormal=False), max_size=300)
scales = st.sampled_from([0.0, 0.25, 1.0])


@given(numbers, scales, st.booleans(), st.integers(1, 40))
def test_they_are_a_mapping_of_the_scaled_values(
    values: list[float], scale: float, gaps: bool, count: int
) -> None:
    documents: Sequence[int] = (
        [3 * number + 1 for number in range(len(values))] if gaps else range(len(values))
    )
    similarities = Similarities(documents, values, scale)
    expected = {number: value * scale for number, value in zip(documents, values, strict=True)}
    assert similarities == similarities.copy() == expected
    assert similarities.of([*documents, 10_000]) == [*expected.values(), 0.0]
    assert similarities.get(10_000) is None
    assert similarities.with_more({10_000: 0.5}) == expected | {10_000: 0.5}
    least = similarities.least_of_best(count)
    assert sum(value >= least for value in expected.values()) >= min(count, len(values))
    assert set(similarities.at_least(0.1)) >= {n for n, value in expected.items() if value > 0.1 + 1e-9}
    assert all(expected[number] >= 0.1 - 1e-9 for number in similarities.at_least(0.1))


def test_many_reach_only_what_many_reach() -> None:
    similarities = Similarities(range(1_000), [number / 1_000 for number in range(1_000)])
    similarities.least_of_best(10)
    assert similarities.many_reach(0.5, 10)
    assert not similarities.many_reach(0.995, 10)
    assert not similarities.many_reach(0.0, 1_000)


WORDS = ["invoice", "ticket", "message", "folder", "report", "branch", "device", "budget", "survey"]


@pytest.mark.parametrize("lookup", [1, 8, 10_000])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_left_out_is_not_among_the_best(
    monkeypatch: pytest.MonkeyPatch, lookup: int, seed: int, sparse: bool
) -> None:
    monkeypatch.setattr(fusion, "FEW_POSTINGS", 4)
    monkeypatch.setattr(fusion, "CHECK", 0)
    monkeypatch.setattr(fusion, "LOOKUP", lookup)
    drawn = random.Random(seed)
    index = index_of(
        *(
            tool("s", f"{drawn.choice(WORDS)}_{number}", " ".join(drawn.choices(WORDS, k=drawn.randrange(9))))
            for number in range(400)
        )
    )
    documents = drawn.sample(range(400), 150) if sparse else range(400)
    values = [drawn.choice((drawn.random(), 0.5, -0.1)) for _ in documents]
    whole = dict(zip(documents, values, strict=True))
    for length in range(1, 6):
        plan = analyze_query(" ".join(drawn.sample(WORDS, length)), Filters(), index).plan
        for depth in (1, 24, 60, 500):
            expected = rank(index, plan, depth, TierScores(whole))
            found = rank(index, plan, depth, TierScores(Similarities(documents, values)))
            assert found == expected


def test_words_alone_leave_out_nothing_that_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "FEW_POSTINGS", 0)
    monkeypatch.setattr(fusion, "CHECK", 0)
    drawn = random.Random(7)
    index = index_of(
        *(
            tool("s", f"t{number}", " ".join(drawn.choices(WORDS, k=drawn.randrange(6))))
            for number in range(300)
        )
    )
    plan = analyze_query("invoice ticket report", Filters(), index).plan
    few, all_of_them = rank(index, plan, 24), rank(index, plan, 300)
    assert few.documents == all_of_them.documents[:24]
    assert few.matching == all_of_them.matching == len(all_of_them.documents)
