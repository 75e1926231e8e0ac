"""The official suite against the fake ``everything``, directly and through mcpzip, and against mcpzip's
upstream side: ``python tests/suite/run.py [--leg LEG] [--revision REVISION] [--required] [--keep FOLDER]``.
With ``--daemon`` the daemon serves the client scenarios.

The rule: mcpzip is right when the suite can't tell it from what is behind it. So a scenario must end through
it as it does directly, check by check; and what a revision requires must pass. Exit code 0: so it is; 1: a
difference or a failure; 2: it couldn't be run.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import official
import stage
from legs import LEGS, Leg, Results, Run
from official import REVISIONS, Outcome
from report import by_group, by_scenario, overview

HERE = Path(__file__).parent
_OTHER_ERA = dict(zip(REVISIONS, ("modern", "legacy"), strict=True))


def server_leg(leg: Leg, revision: str, folder: Path) -> Results:
    """The suite's server scenarios, against the fake or what stands before it."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    era = _OTHER_ERA[revision] if leg.mixed else "both"
    with stage.proxied(leg.before, home, era) if leg.before else stage.everything(home, era) as url:
        return official.check_server(url, revision, folder / "reports")


def client_leg(leg: Leg, revision: str, folder: Path, *, required: bool = False) -> Results:
    """The suite's client scenarios, as many at a time as there are processors. required: no others."""
    script = [sys.executable, str(HERE / "client.py")]
    script += ["--era", _OTHER_ERA[revision]] if leg.mixed else []
    known = leg.requirements(revision)
    scenarios = known.required if required else known.all

    def one(scenario: str) -> Outcome:
        return official.check_client(script, scenario, revision, folder / scenario)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(scenarios, pool.map(one, scenarios), strict=True))


def findings(run: Run, direct: Results | None) -> Iterator[str]:
    """What is wrong with a run, a line each. direct: how the same ended without mcpzip, to be compared."""
    required = run.required()
    for scenario, outcome in run.results.items():
        if scenario in required and not outcome.ok:
            yield f"{scenario} is required and fails"
            yield from (f"    {complaint}" for complaint in outcome.complaints)
        elif direct is not None and outcome.verdicts != direct[scenario].verdicts:
            here, there = outcome.verdicts, direct[scenario].verdicts
            yield f"{scenario} ends otherwise than directly"
            yield from (f"    {check}: {status}, directly only" for check, status in there - here)
            yield from (f"    {check}: {status}, through only" for check, status in here - there)
            yield from (f"    {it}" for it in outcome.complaints if it not in direct[scenario].complaints)


def main() -> int:
    """Run what was asked for, print the table and what is wrong."""
    parser = argparse.ArgumentParser(description="Run the official conformance suite.")
    parser.add_argument("--leg", action="append", choices=LEGS, help="only this leg (again for another)")
    parser.add_argument("--revision", action="append", choices=REVISIONS, help="only this revision")
    parser.add_argument("--required", action="store_true", help="of clients only what the revision requires")
    parser.add_argument("--keep", type=Path, help="keep the suite's reports in this folder")
    parser.add_argument("--daemon", action="store_true", help="serve the client scenarios by the daemon")
    told = parser.parse_args()
    os.environ["MCPZIP_DAEMON"] = "" if told.daemon else "off"
    with tempfile.TemporaryDirectory() as temporary:
        place = (told.keep or Path(temporary)).resolve()
        try:
            names, revisions = _with_direct(told.leg or list(LEGS)), told.revision or list(REVISIONS)
            return _run(names, revisions, place, required=told.required)
        except (official.NotInstalledError, stage.StageError) as error:
            print(error, file=sys.stderr)
            return 2


def _with_direct(names: list[str]) -> list[str]:
    """The legs in their order, and what they are compared with."""
    compared = any(LEGS[name].before and not LEGS[name].mixed for name in names)
    return [name for name in LEGS if name in names or (compared and name == "direct")]


def _run(names: list[str], revisions: list[str], place: Path, *, required: bool) -> int:
    def play(revision: str, name: str) -> Results:
        leg, folder = LEGS[name], place / revision / name.replace(" ", "-")
        if leg.side == "client":
            return client_leg(leg, revision, folder, required=required)
        return server_leg(leg, revision, folder)

    # The scenarios for servers come one after another, each with its waiting; those for clients do not.
    waiting = [(revision, name) for revision in revisions for name in names if LEGS[name].side != "client"]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        played = dict(zip(waiting, pool.map(lambda leg: play(*leg), waiting), strict=True))
    runs: list[Run] = []
    wrong: list[str] = []
    for revision in revisions:
        direct: Results | None = None
        for name in names:
            leg = LEGS[name]
            run = Run(name, revision, played.get((revision, name)) or play(revision, name))
            results = run.results
            runs.append(run)
            found = list(findings(run, direct if leg.before and not leg.mixed else None))
            wrong += [f"{name}, {revision}: {found[0]}", *found[1:]] if found else []
            direct = results if name == "direct" else direct
    print("\n".join([*overview(runs), "", *by_group(runs), *by_scenario(runs)]))
    if wrong:
        print("\n" + "\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
