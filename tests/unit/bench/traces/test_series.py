"""Which series of calls a program could have made."""

import json

from helpers.traces import raw

from bench.traces.series import Series, chosen, series_of, task_of
from bench.traces.trace import Call, Recorder, Trace


def trace(*steps: tuple[str, str, str] | str, name: str = "t") -> Trace:
    """A trace: a text is a prompt, and else a tool is called with arguments and gives a text."""
    told = Recorder()
    told.text("Look at alpha.txt")
    for number, step in enumerate(steps):
        if isinstance(step, str):
            told.text(step)
            continue
        tool, arguments, result = step
        told.call(str(number), Call(tool, arguments, tool.startswith("local-")))
        told.result(str(number), raw(result))
    told.words("Done.")
    return told.trace(name)


def read(path: str, result: str = "ok") -> tuple[str, str, str]:
    return "files-read", json.dumps({"path": path}), result


def lengths(*steps: tuple[str, str, str] | str) -> list[int]:
    return [len(each.results) for each in series_of(trace(*steps))]


def test_calls_with_known_words_are_a_series() -> None:
    assert lengths(read("alpha.txt", "see beta.txt"), read("beta.txt", "and gamma"), read("gamma")) == [3]


def test_words_that_the_model_made_up_end_it() -> None:
    assert lengths(read("alpha.txt"), read("alpha.txt#2"), read("invented.txt"), read("alpha.txt#4")) == []


def test_a_prompt_a_tool_of_the_harness_and_a_search_for_tools_end_it() -> None:
    three = read("alpha.txt"), read("alpha.txt 2"), read("alpha.txt 3")
    assert lengths(three[0], three[1], "Go on.", three[2]) == []
    assert lengths(three[0], three[1], ("local-python", "{}", "ok"), three[2]) == []
    assert lengths(three[0], three[1], ("route", "{}", "ok"), three[2]) == []


def test_a_repetition_and_a_failure_end_it() -> None:
    three = read("alpha.txt"), read("alpha.txt 2"), read("alpha.txt 3")
    assert lengths(*three) == [3]
    assert lengths(three[0], three[1], three[1]) == []
    assert lengths(three[0], three[1], read("alpha.txt 3", "Error: none")) == []
    assert lengths(three[0], three[1], read("alpha.txt 3", '{"success": false}')) == []


def test_calls_side_by_side_are_a_series() -> None:
    told = Recorder()
    for number in range(3):
        told.call(str(number), Call("files-read", json.dumps({"path": f"p{number}"})))
    for number in range(3):
        told.result(str(number), raw("ok"))
    told.words("Done.")
    [found] = series_of(told.trace("t"))
    assert (found.first, found.turns, len(found.results)) == (0, 1, 3)


def test_series_are_chosen_at_even_distances_one_of_each_task() -> None:
    every = [(str(n // 2), Series(trace(name=str(n)), 0, 1, ())) for n in range(20)]
    assert [each.trace.name for each in chosen(every, 2)] == ["4", "14"]
    assert len(chosen(every, 100)) == 10


def test_the_task_of_a_trace() -> None:
    names = {
        "trajs/some-model_find-the-file.json": "find-the-file.json",
        "mcp_servers/github/official/run-3/find__it/messages.json": "github/find__it",
        "baseline/output/m.json#t1": "baseline/output/m.json#t1",
    }
    assert {name: task_of(trace(name=name)) for name in names} == names
