"""What runs the official suite: what it installs, how it reads reports, when it finds something wrong."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import legs
import official
import pytest
import report
import run
from official import Outcome, Requirements

HERE = Path(__file__).parent


def outcome(*checks: tuple[str, str], complaints: tuple[str, ...] = ()) -> Outcome:
    return Outcome(Counter(checks), complaints)


GOOD, BAD = outcome(("a", "SUCCESS")), outcome(("a", "FAILURE"), complaints=("a: no",))


@pytest.fixture(autouse=True)
def ping_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "requirements", lambda *_: Requirements(("ping",), {"tasks": "extension"}))


def found(results: Mapping[str, Outcome], direct: Mapping[str, Outcome] | None = None) -> list[str]:
    return list(run.findings(legs.Run("through to stdio", "2025-11-25", results), direct))


def test_what_is_required_must_pass() -> None:
    assert found({"ping": GOOD, "tasks": BAD}) == []
    assert found({"ping": BAD, "tasks": GOOD}) == ["ping is required and fails", "    a: no"]


def test_what_mixed_eras_rule_out_need_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legs, "BEYOND", {("through to stdio", "2025-11-25"): {"ping": "no reason"}})
    assert found({"ping": BAD, "tasks": BAD}) == []


def test_every_scenario_must_end_as_it_does_directly() -> None:
    direct = {"ping": GOOD, "tasks": BAD}
    assert found(direct, direct) == []
    assert found({"ping": GOOD, "tasks": GOOD}, direct) == [
        "tasks ends otherwise than directly",
        "    a: FAILURE, directly only",
        "    a: SUCCESS, through only",
    ]


def test_a_check_more_or_less_is_a_difference_and_a_note_is_none() -> None:
    direct = {"ping": outcome(("a", "SUCCESS"), ("b", "SUCCESS"))}
    assert found({"ping": GOOD}, direct) == [
        "ping ends otherwise than directly",
        "    b: SUCCESS, directly only",
    ]
    assert found({"ping": outcome(("a", "SUCCESS"), ("b", "SUCCESS"), ("c", "INFO"))}, direct) == []


def test_the_tables_count_scenarios_by_leg_and_by_group() -> None:
    runs = [legs.Run("direct", "2025-11-25", {"ping": GOOD, "tasks-x": BAD, "tools-call-sampling": GOOD})]
    assert list(report.overview(runs))[2:] == ["| direct | 2025-11-25 | 1 of 1 | 1 of 2 | 2 | 1 |"]
    assert list(report.by_group(runs))[2:] == [
        "| the connection | 2025-11-25 | 1 of 1 |",
        "| sampling and elicitation | 2025-11-25 | 1 of 1 |",
        "| tasks (extension) | 2025-11-25 | 0 of 1 |",
        "",
    ]


def test_the_scenarios_of_authorization_are_on_where_the_client_signs_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Requirements(("initialize", "auth/scope"), {"tasks": "extension", "auth/dpop": "extension"})
    monkeypatch.setattr(official, "requirements", lambda *_: told)
    assert legs.LEGS["client"].requirements("2026-07-28").all == ("initialize", "tasks")
    signs_in = legs.Run("client that signs in", "2026-07-28", {"auth/scope": BAD, "auth/dpop": BAD})
    assert signs_in.required() == ["auth/scope"]
    assert list(run.findings(signs_in, None)) == ["auth/scope is required and fails", "    a: no"]


def test_every_scenario_of_authorization_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Requirements(("auth/scope", "auth/iss"), {"auth/dpop": "extension"})
    monkeypatch.setattr(official, "requirements", lambda *_: told)
    runs = [
        legs.Run("client that signs in", "2025-11-25", {"auth/scope": GOOD, "auth/dpop": BAD}),
        legs.Run("client that signs in", "2026-07-28", {"auth/scope": GOOD, "auth/iss": GOOD}),
    ]
    assert list(report.by_group(runs)) == []
    assert list(report.by_scenario(runs)) == [
        "| client that signs in | 2025-11-25 | 2026-07-28 |",
        "|---|--:|--:|",
        "| `auth/scope` | 1 of 1 | 1 of 1 |",
        "| `auth/dpop` | (0 of 1) |  |",
        "| `auth/iss` |  | 1 of 1 |",
        "",
    ]


def test_the_newest_report_of_a_scenario_is_read(tmp_path: Path) -> None:
    for moment, status in (("2026-11-22T01-00-00-000Z", "FAILURE"), ("2026-11-22T02-00-00-000Z", "SUCCESS")):
        for scenario in ("tools", "tools-list"):
            folder = tmp_path / f"server-{scenario}-{moment}"
            folder.mkdir()
            checks = [{"id": scenario, "status": status, "description": "d"}]
            (folder / "checks.json").write_text(json.dumps(checks), "utf-8")
    read = official._outcome(tmp_path, "server-tools-")
    assert (read.ok, read.passed, read.failed) == (True, 1, 0)
    assert read.checks == Counter({("tools", "SUCCESS"): 1})


def test_a_scenario_without_a_report_fails(tmp_path: Path) -> None:
    missing = official._outcome(tmp_path, "server-ping-")
    assert (missing.ok, missing.complaints) == (False, ("the suite wrote no report",))


def test_the_lock_names_no_registry_and_the_pins_are_exact() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text("utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    wanted = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"]
    for name, version in wanted.items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
