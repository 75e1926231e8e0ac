"""Pinned failures: what is read, what they make of a report, and what is written for the next run."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_conformance.known_failures import ExpectationError, Expectations, apply, read, text, write
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

from mcpzip.model.errors import McpzipError

KNOWN = ("fidelity.is-error", "fidelity.meta", "search.limit")
PASSED, FAILED, SKIPPED, BROKEN = Status


def report(**subjects: tuple[Status, ...]) -> Report:
    """Subjects, the statuses of `KNOWN` on each; ``family__variant`` for ``family:variant``."""
    told = tuple(
        SubjectReport(
            name.replace("__", ":"),
            name,
            "",
            tuple(
                Verdict(check, check.partition(".")[0], "must", status, 0.1, f"{check} is {status.value}.")
                for check, status in zip(KNOWN, statuses, strict=False)
            ),
        )
        for name, statuses in subjects.items()
    )
    return Report("2026-01-01T00:00:00+00:00", 1.0, "3.13.0", "linux", (), told)


def pins(file: Path) -> dict[str, dict[str, str]]:
    return {subject: dict(pins) for subject, pins in read(file, KNOWN).pins.items()}


def test_a_pinned_failure_is_expected_and_a_pinned_pass_is_not() -> None:
    known = Expectations({"p": {"fidelity.is-error": "It drops it.", "fidelity.meta": "It drops it."}})
    applied = apply(report(p=(FAILED, PASSED, FAILED)), known)
    assert applied.expecting
    [subject] = applied.subjects
    assert [verdict.pinned for verdict in subject.verdicts] == ["It drops it.", "It drops it.", ""]
    assert [applied.unexpected(verdict) for verdict in subject.verdicts] == [False, True, True]
    assert apply(report(p=(FAILED, FAILED)), known).clean()


def test_pins_for_what_was_not_played_say_nothing() -> None:
    known = Expectations({"other": {"search.limit": "x"}, "p": {"search.limit": "x"}})
    assert apply(report(p=(PASSED, PASSED)), known).clean()
    assert apply(report(p=(PASSED, PASSED, SKIPPED)), known).clean()


def test_a_family_is_pinned_for_all_its_variants_and_a_variant_for_itself() -> None:
    known = Expectations({"p": {"fidelity.is-error": "all"}, "p:http": {"fidelity.is-error": "this"}})
    applied = apply(report(p__http=(FAILED,), p__stdio=(FAILED,), q__http=(FAILED,)), known)
    assert [subject.verdicts[0].pinned for subject in applied.subjects] == ["this", "all", ""]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("[p", "Expected"),
        (
            'fidelity = "x"',
            "fidelity: a string stands here; put it under the subject it is about, as",
        ),
        (
            '["p"]\nfidelity.meta = "x"',
            'p.fidelity: a table stands here; write the whole id in quotes, as in "f',
        ),
        (
            '["p:http"]\n"fidelity.mata" = "x"',
            '"p:http"."fidelity.mata": there is no such check; the nearest is',
        ),
        ('[p]\n"zzz" = "x"', "p.zzz: there is no such check; see mcpzip-conformance list."),
        ('[p]\n"search.limit" = 7', 'p."search.limit": a number stands here; say why it fails, as a string.'),
        ('[p]\n"search.limit" = " "', 'p."search.limit": it is empty; say why it fails in a sentence.'),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, written: str, says: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(written, encoding="utf-8")
    with pytest.raises(ExpectationError) as caught:
        read(file, KNOWN)
    assert str(caught.value).startswith(f"{file}: ")
    assert says in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"it can't be read .*; check the path, or make it with"):
        read(tmp_path / "none.toml", KNOWN)


def test_what_fails_is_pinned_with_its_sentence(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    played = report(p=(FAILED, PASSED, SKIPPED), q__http=(BROKEN, FAILED))
    write(played, file, KNOWN)
    assert pins(file) == {
        "p": {"fidelity.is-error": "fidelity.is-error is failed."},
        "q:http": {"fidelity.meta": "fidelity.meta is failed."},
    }
    assert list(tmp_path.iterdir()) == [file]


def test_reasons_stay_and_pins_of_what_passes_go(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    before = {
        "p": {
            "fidelity.is-error": "Since 0.9.",
            "fidelity.meta": "Fixed by now.",
            "search.limit": "Skipped.",
        },
        "q": {"search.limit": "Not in this run."},
        "r": {"fidelity.is-error": "Broken now."},
    }
    file.write_text(text(Expectations(before)), encoding="utf-8")
    write(report(p=(FAILED, PASSED, SKIPPED), r=(BROKEN,)), file, KNOWN)
    del before["p"]["fidelity.meta"]
    assert pins(file) == before


def test_a_familys_pin_is_handed_down_when_a_variant_passes(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    whole = {"p": {"fidelity.is-error": "Both.", "fidelity.meta": "Both, too."}}
    file.write_text(text(Expectations(whole)), encoding="utf-8")
    write(report(p__http=(FAILED, FAILED), p__stdio=(FAILED, PASSED)), file, KNOWN)
    assert pins(file) == {"p": {"fidelity.is-error": "Both."}, "p:http": {"fidelity.meta": "Both, too."}}


def test_a_familys_pin_is_handed_down_to_the_variants_that_were_not_played(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    before = {
        "p": {"fidelity.is-error": "All.", "fidelity.meta": "All, too."},
        "p:sse": {"fidelity.meta": "Own."},
    }
    file.write_text(text(Expectations(before)), encoding="utf-8")
    write(report(p__stdio=(FAILED, PASSED)), file, KNOWN, ("p:stdio", "p:http", "p:sse", "q:http"))
    assert pins(file) == {
        "p": {"fidelity.is-error": "All."},
        "p:http": {"fidelity.meta": "All, too."},
        "p:sse": {"fidelity.meta": "Own."},
    }


def test_a_file_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(McpzipError, match=r"can't be written .*: give a path that can\."):
        write(report(p=(FAILED,)), tmp_path / "none" / "known.toml", KNOWN)


STATUSES = st.lists(st.sampled_from([PASSED, FAILED, SKIPPED]), min_size=3, max_size=3).map(tuple)
PLAYED = ("p:http", "p:stdio", "q", "r:é")
NAMES = st.sampled_from(["p", "r", *PLAYED])
REASONS = st.text(min_size=1).filter(str.strip)
PINS = st.dictionaries(NAMES, st.dictionaries(st.sampled_from(KNOWN), REASONS, min_size=1), max_size=5)


@given(PINS, st.dictionaries(st.sampled_from(PLAYED), STATUSES, min_size=1))
def test_a_run_is_as_the_file_says_that_was_written_after_it(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, dict[str, str]],
    played: dict[str, tuple[Status, ...]],
) -> None:
    file = tmp_path_factory.mktemp("pins") / "known.toml"
    file.write_text(text(Expectations(before)), encoding="utf-8", newline="")
    assert pins(file) == before
    base = report(p=(PASSED,)).subjects[0]
    shown = replace(
        report(),
        subjects=tuple(
            replace(base, id=name, verdicts=report(p=statuses).subjects[0].verdicts)
            for name, statuses in played.items()
        ),
    )
    write(shown, file, KNOWN)
    assert apply(shown, read(file, KNOWN)).clean()
    once = file.read_bytes()
    write(shown, file, KNOWN)
    assert file.read_bytes() == once
