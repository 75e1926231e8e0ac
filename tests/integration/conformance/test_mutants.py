"""The runner's own test: wrong proxies are caught by the check that names their fault, the right one by none.

A fault of each kind is played here, before its own check; `nox -s mutants` plays them all before every check
of level must.
"""

import pytest
from mcpzip_conformance.check import LEVELS, MUST
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.mutants.faults import FAULTS
from mcpzip_conformance.mutants.hunt import MODES, hunt_all, mutant, right
from mcpzip_conformance.runner import run
from mcpzip_conformance.verdict import Status

BY_ID = {check.id: check for check in ALL}
PLAYED = (
    # what the client gets, and the server
    "drops-is-error",
    "hides-errors",
    "runs-twice",
    "retries",
    # the messages, and what is said while a call runs
    "spells-ids",
    "dies-of-junk",
    "swallows-cancel",
    "claims",
    # what is offered
    "first-page-only",
    # servers that misbehave, the end, secrets
    "hangs-on-junk",
    "mixes-answers",
    "leaves-servers",
    "inherits",
    # servers that mean harm
    "runs-elsewhere",
    "forgets-links",
    "says-names-back",
    "holds-back-all",
    "offers-approval",
    # large results, and programs
    "cuts-silently",
    "keeps-for-all",
    "runs-before-asking",
    "forgets-variables",
    # meta-tools
    "drops-text",
    "ranks-by-name",
    # HTTP
    "lets-anyone-in",
    "follows-redirects",
    # several clients
    "progress-to-all",
    "asks-who-can",
    "dies-of-hanging-up",
    # several processes, and tokens
    "begins-any-session",
    "makes-again",
    "ends-with-store",
    "believes-host",
    "takes-hmac",
)


async def test_wrong_proxies_are_caught() -> None:
    hunted = await hunt_all(PLAYED, thorough=False, jobs=2, patience=4.0)
    assert [each.named for each in hunted if not each.as_it_should_be] == []
    assert all(each.named.summary and each.named.transcript for each in hunted)


@pytest.mark.parametrize("mode", MODES)
async def test_the_right_one_passes_what_they_fail(mode: str) -> None:
    ids = {FAULTS[fault].check for fault in PLAYED if FAULTS[fault].mode == mode} or {"protocol.ping"}
    report = await run([right(mode)], [check for check in ALL if check.id in ids])
    assert [it for it in report.subjects[0].verdicts if it.status is not Status.PASSED] == []


HELD = (
    "description",
    "offers",
    "hidden",
    "near-copy",
    "description-changed",
    "other-era",
    "hints-changed",
    "error-text",
    "typosquat",
    "held-out-of-reach",
)


async def test_a_gate_that_holds_everything_back_lets_no_poison_through() -> None:
    checks = [BY_ID[f"poisoning.{name}"] for name in HELD]
    for subject, status in ((mutant("holds-back-all"), Status.PASSED), (right("names"), Status.FAILED)):
        report = await run([subject], checks)
        assert [it for it in report.subjects[0].verdicts if it.status is not status] == []


async def test_what_a_proxy_never_shows_is_not_held_back() -> None:
    """Cases that no honest text of the same kind could fail were passed by proxies that show none."""
    report = await run([right("names")], [BY_ID["poisoning.instructions"]])
    (verdict,) = report.subjects[0].verdicts
    assert (verdict.status, verdict.summary) == (
        Status.SKIPPED,
        "It shows a model no instructions of any server.",
    )


def test_every_row_can_be_played() -> None:
    for name, fault in FAULTS.items():
        assert fault.mode in MODES, name
        assert fault.check in BY_ID, name
        assert BY_ID[fault.check].level in LEVELS, name
        assert fault.check not in fault.also, name
        assert all(BY_ID[id].level == MUST for id in fault.also), name


def test_there_is_a_fault_for_every_group() -> None:
    groups = {check.group for check in ALL if not check.measures}
    assert {BY_ID[fault.check].group for fault in FAULTS.values()} == groups
