"""Composed tasks: what they ask for, and that they are written as they are read."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bench.retrieval.alike import made, queries
from bench.retrieval.dataset import read_dataset, write_dataset
from bench.retrieval.tasks import composed, main

ENTRIES, REQUESTS = made()
QUERIES = queries(REQUESTS)


def test_a_task_asks_for_what_its_requests_ask_for(tmp_path: Path) -> None:
    tasks = composed(QUERIES, 20, Random(3))
    assert tasks == composed(QUERIES, 20, Random(3)) != composed(QUERIES, 20, Random(4))
    needs = {request.needs[0] for request in QUERIES}
    for task in tasks:
        assert 2 <= len(task.needs) <= 4
        assert set(task.needs) <= needs
        assert set(task.relevance) == set().union(*task.needs)
    assert {task.kind for task in tasks} == {"one server", "several servers", "list"}
    write_dataset(tmp_path, ENTRIES[:0], tasks)
    assert (tmp_path / "qrels.tsv").read_text().count("\n") == 1 + sum(len(task.relevance) for task in tasks)
    write_dataset(tmp_path, ENTRIES, tasks)
    read = read_dataset(tmp_path)
    assert [(task.text, set(task.needs)) for task in read.queries] == [(t.text, set(t.needs)) for t in tasks]


def test_few_requests_make_tasks_of_several_servers_only() -> None:
    assert {task.kind for task in composed(QUERIES[:2], 20, Random(3))} <= {"several servers", "list"}


def test_a_folder_without_requests_for_single_tools_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(tmp_path, ENTRIES, [replace(QUERIES[0], kind="keyword")])
    monkeypatch.setattr("sys.argv", ["tasks", str(tmp_path / "out"), "--of", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "no requests of the kinds step, natural, plain" in capsys.readouterr().err
