"""Simulated use: what it learns, and what it reports."""

import json

import pytest

from bench.retrieval.learned import Simulation, calibration, failed_searches, report, right_calls, wrong_calls

TOOLS = {
    "chat__post": "Send a message to a channel",
    "house__open": "Open a door of the house",
    "house__shut": "Shut a door of the house",
    "house__paint": "Paint a wall of the house",
    "bank__pay": "Pay an invoice",
    "bank__bills": "List the invoices",
    "maps__route": "Find the way to a place",
}
QUERIES = {
    "inform my colleagues about the closed door": "chat__post",
    "send my colleagues a message": "chat__post",
    "let the painter into the house": "house__open",
    "open the front door": "house__open",
    "settle what we owe": "bank__pay",
}


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    folder = tmp_path_factory.mktemp("folder")
    tools = [
        json.dumps({"server": server, "name": name, "description": text})
        for (server, name), text in ((tool.split("__"), text) for tool, text in TOOLS.items())
    ]
    queries = [json.dumps({"qid": f"q{n}", "kind": "step", "query": text}) for n, text in enumerate(QUERIES)]
    right = ["qid\ttool\trel\tgroup", *(f"q{n}\t{tool}\t2\t0" for n, tool in enumerate(QUERIES.values()))]
    for name, lines in (("tools.jsonl", tools), ("queries.jsonl", queries), ("qrels.tsv", right)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return Simulation(folder)


def test_a_request_of_each_tool_with_several_is_learned_and_finds_it_again(simulation: Simulation) -> None:
    outcomes = list(right_calls(simulation, 1))
    again = [outcome for scenario, outcome in outcomes if scenario == "again, after three uses"]
    assert {next(iter(outcome[0].needs[0])) for outcome in again} == {"chat__post", "house__open"}
    assert all(outcome[2].recall_1 >= outcome[1].recall_1 for outcome in again)
    others = [outcome[0].text for scenario, outcome in outcomes if scenario == "for other tools"]
    assert others == ["settle what we owe"]
    assert outcomes == list(right_calls(simulation, 1))
    assert "| again " in report(outcomes)
    assert "strong" in calibration(outcomes)


def test_a_request_that_failed_finds_its_tool_after_it_was_made_in_other_words(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(failed_searches(simulation)) == []
    failed, made = simulation.queries[:2]
    monkeypatch.setitem(simulation.found, failed.id, simulation.searcher.search("paint", 1))
    ((scenario, outcome),) = failed_searches(simulation)
    assert (scenario, outcome[0], made.text) == ("that had failed", failed, "send my colleagues a message")
    assert (outcome[1].recall_1, outcome[2].recall_1) == (0, 1)


def test_wrong_calls_are_learned_of_all_requests_where_there_are_few(simulation: Simulation) -> None:
    scenarios = {scenario for scenario, _ in wrong_calls(simulation, 1)}
    assert scenarios == {
        "200 wrong calls: the same",
        "200 near misses: the same",
        "200 near misses, 28 days later: the same",
    }
