"""`python -m bench.traces`, on traces that are written here."""

import json
from pathlib import Path

import pytest
from helpers.traces import words

from bench.traces import readers
from bench.traces.__main__ import main
from bench.traces.readers import FORMATS, UnreadableTraceError
from bench.traces.replay import FETCHED, FETCHED_LIMITS, LIMITS, play_folder
from bench.traces.report import as_json, losing, page, percentile, share_of_large

LOG = "\n".join(f"order {number} is one of the many that are here" for number in range(1_200))
TOOLATHLON = FORMATS[0]


def write(folder: Path, name: str, log: str, *answers: str) -> None:
    """A trace in which a model reads ``log``, and then answers, calling another tool each time."""
    call = {"id": "c", "function": {"name": "shop-list", "arguments": "{}"}}
    messages: list[dict[str, object]] = [{"role": "user", "content": "Do it."}]
    for number, answer in enumerate(["", *answers]):
        messages.append({"role": "assistant", "content": answer, "tool_calls": [call | {"id": str(number)}]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": "ok" if number else log})
    messages.append({"role": "assistant", "content": "Done."})
    (folder / "trajs").mkdir(exist_ok=True)
    (folder / "trajs" / name).write_text(json.dumps({"messages": messages}))


def test_a_long_conversation_saves_and_a_quotation_of_all_loses(tmp_path: Path) -> None:
    write(tmp_path, "saves.json", LOG, *(["next"] * 5))
    write(tmp_path, "loses.json", LOG, LOG)
    write(tmp_path, "small.json", "short", "next")
    corpus = play_folder(tmp_path, TOOLATHLON, words, pytest.fail)
    loses, saves, small = corpus.played
    for limit in LIMITS:
        assert saves.kept[limit].input < saves.direct.input / 3
        assert small.kept[limit].input == small.direct.input
        assert losing(corpus, limit) == [loses]
        assert loses.kept[limit].whole == 1
    shown = page([corpus], "words")
    assert "1 of 2; worst +" in shown
    assert "| trajs/loses " in shown
    assert "1 kept, of which 1 read whole; 1 extra requests" in shown


def test_the_share_that_is_read_whole_is_spread_evenly(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, f"{number}.json", LOG)
    corpus = play_folder(tmp_path, TOOLATHLON, words, pytest.fail)
    for limit in FETCHED_LIMITS:
        whole = {share: corpus.total(lambda p, k=(limit, share): p.fetched[k]).whole for share in FETCHED}  # type: ignore[misc]
        assert whole == {share: 4 * share for share in FETCHED}


def test_bad_files_are_named_and_skipped(tmp_path: Path) -> None:
    write(tmp_path, "good.json", "short")
    (tmp_path / "trajs" / "broken.json").write_text("{")
    (tmp_path / "trajs" / "silent.json").write_text('{"messages": [{"role": "user", "content": "?"}]}')
    notes: list[str] = []
    corpus = play_folder(tmp_path, TOOLATHLON, words, notes.append)
    assert [each.name for each in corpus.played] == ["trajs/good.json"]
    assert [note.split(":")[0] for note in notes] == [
        "Skipped trajs/broken.json",
        "Skipped trajs/silent.json",
    ]
    assert "trajs/broken.json: It is no trace of Toolathlon" in page([corpus], "words")


def test_too_many_files_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.json", "short")
    write(tmp_path, "b.json", "short")
    monkeypatch.setattr(readers, "FILES", 1)
    with pytest.raises(UnreadableTraceError, match="more than 1 files"):
        play_folder(tmp_path, TOOLATHLON, words, pytest.fail)


def test_the_command_prints_markdown_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "saves.json", LOG, *(["next"] * 5))
    out = tmp_path / "figures.json"
    main([str(tmp_path), "--json", str(out)])
    shown = capsys.readouterr().out
    assert shown.startswith("Counted in ")
    assert "| Toolathlon" in shown
    [corpus] = json.loads(out.read_text())["corpora"]
    assert (corpus["traces"], corpus["results"]["number"]) == (1, 6)
    assert corpus["totals"]["kept"]["10000"]["input"] < corpus["totals"]["direct"]["input"]
    assert corpus["each"][0]["kept"]["10000"]["kept"] == 1


def test_a_folder_without_traces_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 2
    assert "has no traces of a known format" in capsys.readouterr().err


def test_nothing_is_a_report_too() -> None:
    from bench.traces.replay import Corpus

    assert "Toolathlon" in page([Corpus("x", "Toolathlon")], "words")
    assert json.loads(as_json([Corpus("x", "Toolathlon")], "words"))["corpora"][0]["traces"] == 0


def test_percentiles_and_shares() -> None:
    assert [percentile(range(1, 101), share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]
    assert share_of_large([100, 300, 600], 250) == 0.9
    assert share_of_large([], 250) == 0
