"""Calls as bars and columns: nothing lies outside, whatever the times are, and what is drawn is said too."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.proxy.call_record import HAPPENED
from mcpzip.server.daemon.call_report import CallEvent, CallReport
from mcpzip.ui.charts import WIDTH
from mcpzip.ui.latency import COLUMNS, HEIGHT, STEP, latency
from mcpzip.ui.rendering import render
from mcpzip.ui.waterfall import lines, row

NOW = 2_000.0


def call(
    number: int, at: float, seconds: float | None, *events: tuple[str, float], **more: str
) -> CallReport:
    return CallReport(
        number=number,
        client="c",
        version="1",
        pid=7,
        server=more.get("server", "s"),
        tool="t",
        at=at,
        seconds=seconds,
        outcome="" if seconds is None else more.get("outcome", "result"),
        error="",
        decision=more.get("decision", ""),
        rule="",
        approved_by="",
        arguments=2,
        result=2,
        tokens=1,
        repairs=0,
        kept=False,
        parent=0,
        continues=0,
        events=tuple(CallEvent(*event) for event in events),
    )


times = st.floats(0, 3_000, allow_nan=False)
happened = st.lists(st.tuples(st.sampled_from(HAPPENED), times), max_size=6)
made = st.builds(
    lambda at, seconds, events: (at, seconds, events), times, st.none() | times | st.just(0.0), happened
)


@given(st.lists(made, max_size=12))
def test_bars_are_inside_and_each_call_is_there_once(found: list[tuple[float, float | None, object]]) -> None:
    calls = [call(number, at, seconds, *events) for number, (at, seconds, events) in enumerate(found)]  # type: ignore[misc]
    drawn = lines(calls, NOW)
    assert sorted(one.call.number for line in drawn for one in line.rows) == list(range(len(calls)))
    assert [line.at for line in drawn] == sorted((line.at for line in drawn), reverse=True)
    for one in (one for line in drawn for one in line.rows):
        assert one.took
        for piece in one.pieces:
            assert piece.x >= 0
            assert piece.width > 0
            assert piece.x + piece.width <= WIDTH + 0.01


def test_calls_that_follow_closely_share_a_line_of_time() -> None:
    drawn = lines([call(1, 100.0, 0.1), call(2, 100.2, 0.1), call(3, 105.0, 1.0), call(4, 108.0, 0.1)], NOW)
    assert [[one.call.number for one in line.rows] for line in drawn] == [[3, 4], [1, 2]]
    assert drawn[1].took == "300 ms"
    first, second = drawn[1].rows
    assert first.pieces[0].x == 0
    assert round(second.pieces[0].x) == 67


def test_what_is_drawn_is_said() -> None:
    events = (
        ("connecting", 0.1),
        ("sent", 0.6),
        ("sampling", 0.7),
        ("question over", 0.9),
        ("answered", 1.0),
    )
    drawn = row(call(1, 100.0, 1.0, *events), NOW)
    assert [(one.kind, one.width) for one in drawn.pieces] == [
        ("mcpzip", 10.0),
        ("connection", 50.0),
        ("server", 10.0),
        ("client", 20.0),
        ("server", 10.0),
        ("mark", 0.5),
    ]
    assert drawn.parts == (
        "mcpzip 100 ms, the connection to the server 500 ms, the server 200 ms, the client's answers 200 ms"
    )


def test_a_short_bar_is_of_who_took_most() -> None:
    (line,) = lines([call(1, 100.0, 0.01, ("sent", 0.004)), call(2, 100.0, 10.0)], NOW)
    assert [(one.kind, one.width) for one in line.rows[0].pieces] == [("server", 0.5)]


def test_only_a_decision_that_matters_has_a_mark() -> None:
    for decision, marks in (("", 0), ("allow", 0), ("ask", 1), ("deny", 1)):
        drawn = row(call(1, 100.0, 1.0, ("decided", 0.1), decision=decision), NOW)
        assert sum(piece.kind == "mark" for piece in drawn.pieces) == marks


@given(st.lists(times | st.none(), max_size=3 * COLUMNS))
def test_columns_are_inside(found: list[float | None]) -> None:
    calls = [call(number, 100.0, seconds, ("sent", 0.0)) for number, seconds in enumerate(found)]
    drawn = latency(calls, "s")
    sent = [seconds for seconds in found if seconds][-COLUMNS:]
    assert (drawn is None) == (not sent)
    if drawn is not None:
        assert len(drawn.columns) == len(sent)
        assert all(one.y >= 0 and one.y + one.height <= HEIGHT + 0.2 for one in drawn.columns)
        assert all(0 <= one.x < COLUMNS * STEP for one in drawn.columns)
        assert max(one.height for one in drawn.columns) == HEIGHT


def test_latency_is_the_time_at_the_server() -> None:
    calls = [
        call(1, 100.0, 2.0, ("connecting", 0.1), ("sent", 1.0), ("answered", 1.5)),
        call(2, 101.0, 0.1, ("sent", 0.0), server="other"),
        call(3, 102.0, 0.1),
        call(4, 103.0, None, ("sent", 0.0)),
        call(5, 104.0, 1.0, ("sent", 0.0), outcome="tool error"),
    ]
    drawn = latency(calls, "s")
    assert drawn is not None
    assert [one.kind for one in drawn.columns] == ["server", "failed"]
    assert (drawn.median, drawn.high, drawn.most, drawn.failed) == ("750 ms", "1.0 s", "1.0 s", 1)
    assert (drawn.begin, drawn.end) == (100.0, 104.0)
    assert latency(calls, "nobody") is None


def test_the_link_to_the_calls_of_a_server_names_it() -> None:
    calls = [call(1, 100.0, 1.0, ("sent", 0.0), ("answered", 1.0), server=".")]
    row = SimpleNamespace(name=".")
    page = render("server_latency.html", root="/r", row=row, calls_problem="", latency=latency(calls, "."))
    assert b'href="/r/calls?server=."' in page
