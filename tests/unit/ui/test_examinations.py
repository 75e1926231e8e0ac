"""What the page *Doctor* shows of findings: bounded, and without secrets."""

from helpers.hostile_texts import hostile
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog
from mcpzip.doctor.finding import GROUPS, LEVELS, Finding
from mcpzip.doctor.setup import Setup
from mcpzip.model.redaction import register
from mcpzip.ui.examinations import shown
from mcpzip.ui.limits import FINDING_LINES, FINDINGS
from mcpzip.ui.rendering import render

SETUP = Setup("/c.json", {}, None, "", "", {}, Catalog(), ())
FOUND = st.builds(
    Finding,
    st.sampled_from(LEVELS),
    st.sampled_from([f"{group}.x" for group in GROUPS]),
    hostile,
    hostile,
    st.lists(hostile, max_size=3).map(tuple),
    hostile,
    hostile,
    st.sampled_from((None, str)),
)


def page_of(findings: list[Finding]) -> str:
    return render(
        "doctor.html",
        root="/r",
        form_token="t",
        examined=shown(findings, SETUP, asked=False),
        asked=False,
        config=SETUP.path,
        logs_command="",
    ).decode()


@given(st.lists(FOUND, max_size=4))
def test_every_finding_is_shown_and_none_acts(findings: list[Finding]) -> None:
    page = page_of(findings)
    assert page.count("<h3>") == len(findings)
    assert page.isprintable() or not [
        sign for sign in page if not sign.isprintable() and sign not in "\n\t\u200d"
    ]


def test_findings_and_their_evidence_are_bounded() -> None:
    long = tuple(f"line-{number}" for number in range(FINDING_LINES + 5))
    found = shown([Finding("error", "files.x", "f", "is wrong", long)] * (FINDINGS + 7), SETUP, asked=True)
    (files,) = [group for group in found.groups if group.findings]
    assert (len(files.findings), files.more, found.counts) == (FINDINGS, 7, {"error": FINDINGS + 7})
    assert len(files.findings[0].evidence) == FINDING_LINES


def test_no_field_has_a_secret() -> None:
    secret = "s3cret-of-a-server-0123456789"
    register(secret)
    page = page_of([Finding("error", "files.x", secret, secret, (secret,), secret, secret)])
    assert secret not in page


def test_what_was_not_asked_is_not_called_fine() -> None:
    unasked = [group.title for group in shown([], SETUP, asked=False).groups if not group.asked]
    assert unasked == ["Servers", "Sign-ins"]
    assert all(group.asked for group in shown([], SETUP, asked=True).groups)
