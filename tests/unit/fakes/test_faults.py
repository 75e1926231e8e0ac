"""Which faults fire on which request, and what they make of an answer."""

import pytest
from mcpzip_fakes.distort import Exit, Pause, Step, Write, distort
from mcpzip_fakes.faults import KINDS, Firing, Plan, fault

LINE = b'{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}\n'


def call(tool: str) -> tuple[str, dict[str, object]]:
    return "tools/call", {"name": tool}


def fired(plan: Plan, *requests: tuple[str, dict[str, object]]) -> list[list[str]]:
    return [[f.kind for f in plan.meet(method, params).faults] for method, params in requests]


def steps(*faults: str, **options: object) -> list[Step]:
    return distort(LINE, Firing(tuple(fault(kind, **options) for kind in faults)))


def test_a_fault_meets_every_request_or_those_of_its_kind() -> None:
    plan = Plan([fault("silence"), fault("crash")])
    assert fired(plan, ("ping", {}), call("a")) == [["silence"], ["silence", "crash"]]


def test_a_fault_of_one_tool_meets_calls_of_it_only() -> None:
    plan = Plan([fault("silence", tool="pay")])
    assert fired(plan, ("tools/list", {}), call("look"), call("pay")) == [[], [], ["silence"]]


def test_nth_and_times_count_the_requests_a_fault_is_for() -> None:
    plan = Plan([fault("silence", tool="pay", nth=2), fault("error", method="ping", times=1)])
    assert fired(plan, call("pay"), call("look"), call("pay"), call("pay")) == [[], [], ["silence"], []]
    assert fired(plan, ("ping", {}), ("ping", {})) == [["error"], []]
    again = Plan([fault("silence", nth=2, times=2)])
    assert fired(again, *[("ping", {})] * 4) == [[], ["silence"], ["silence"], []]


def test_run_picks_one_life_of_a_server() -> None:
    faults = [fault("silence", run=1)]
    assert fired(Plan(faults, run=1), ("ping", {})) == [["silence"]]
    assert fired(Plan(faults, run=2), ("ping", {})) == [[]]


def test_what_carries_no_request_meets_only_the_faults_of_http() -> None:
    plan = Plan([fault("silence"), fault("status", status=404)])
    assert [f.kind for f in plan.meet("http/GET", {}, carrier=True).faults] == ["status"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_row_and_takes_its_own_options(kind: str) -> None:
    row = KINDS[kind]
    assert row.stage in ("start", "request", "answer", "reply", "end")
    assert fault(kind, **{key: value for key, value in row.options.items() if value is not None}).row is row


def test_an_answer_goes_out_as_it_is() -> None:
    assert steps() == [Write(LINE)]


def test_junk_comes_before_the_answer() -> None:
    assert steps("junk", text="hello") == [Write(b"hello\n"), Write(LINE)]


def test_bytes_that_are_not_utf8_come_before_the_answer() -> None:
    first, last = steps("invalid-utf8")
    assert last == Write(LINE)
    assert isinstance(first, Write)
    with pytest.raises(UnicodeDecodeError):
        first.data.decode()


def test_the_wrong_id_keeps_the_rest_as_it_was() -> None:
    assert steps("wrong-id") == [Write(b'{"jsonrpc":"2.0","id":"nobody-asked-7f3a","result":{"n":1.0}}\n')]


def test_a_duplicate() -> None:
    assert steps("duplicate") == [Write(LINE), Write(LINE)]


def test_torn_pieces_make_up_the_answer() -> None:
    pieces = steps("torn", count=4, seconds=0.5)
    assert [piece for piece in pieces if isinstance(piece, Pause)] == [Pause(0.5)] * 4
    assert b"".join(piece.data for piece in pieces if isinstance(piece, Write)) == LINE


def test_a_crash_in_the_middle_ends_the_process_within_the_line() -> None:
    assert steps("crash", when="middle", code=9) == [Write(LINE[: len(LINE) // 2]), Exit(9, "")]
    assert steps("crash", when="after", text="bye") == [Write(LINE), Exit(1, "bye")]


def test_a_crash_is_last_whatever_the_order() -> None:
    crash, duplicate = fault("crash", when="after"), fault("duplicate")
    assert distort(LINE, Firing((crash, duplicate))) == [Write(LINE), Write(LINE), Exit(1, "")]
