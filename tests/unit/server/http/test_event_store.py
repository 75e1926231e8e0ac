"""What is kept of streams for clients that come back: all that was said, in order, within its bounds."""

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.http.event_store import (
    OVERHEAD,
    EventStore,
    EventStream,
    ReplayBudget,
    is_event_id,
    sse_event,
)

EVENT_ID = re.compile(rb"id: (\S+)\r\n")

turns = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(1, 400), st.sampled_from("ttttae")),
    max_size=60,
)
"""Whose session, which of its streams, how long a message, and what is done."""


def id_of(said: bytes) -> str:
    found = EVENT_ID.match(said)
    assert found
    return found[1].decode()


def begun(tracks: EventStore) -> EventStream:
    track = tracks.new(None)
    track.first(only=False)
    return track


class Played:
    """Two sessions, and what was said on their streams."""

    def __init__(self, each: int, together: int) -> None:
        self.budget = ReplayBudget(each, together)
        self.sessions = [EventStore(self.budget, 1.0) for _ in range(2)]
        self.tracks = [[begun(tracks) for _ in range(4)] for tracks in self.sessions]
        self.said: dict[EventStream, list[bytes]] = {track: [] for some in self.tracks for track in some}

    def play(self, script: list[tuple[int, int, int, str]], after: Callable[[], None]) -> None:
        for session, which, size, what in script:
            track = self.tracks[session][which]
            if what == "e":
                self.sessions[session].end()
            elif not track.over:
                self.said[track].append(track.add(b"x" * size, last=what == "a"))
            after()


@given(turns, st.integers(OVERHEAD + 1, 2_000), st.integers(OVERHEAD + 1, 3_000))
def test_no_more_is_kept_than_may_be(
    script: list[tuple[int, int, int, str]], each: int, together: int
) -> None:
    played = Played(each, together)

    def bounded() -> None:
        kept = [
            sum(len(said.line or b"") + OVERHEAD for track in tracks for said in track._kept)
            for tracks in played.tracks
        ]
        assert [tracks.taken for tracks in played.sessions] == kept
        assert played.budget.taken == sum(kept) <= together
        assert max(kept) <= each
        assert [sum(kept) for tracks, kept in zip(played.sessions, kept_of(played), strict=True)] == kept

    def kept_of(played: Played) -> list[list[int]]:
        return [[said.size for track in tracks.kept for said in track._kept] for tracks in played.sessions]

    played.play(script, bounded)
    for tracks in played.sessions:
        tracks.end()
    assert (played.budget.taken, played.budget.kept) == (0, {})


@given(turns, st.integers(OVERHEAD + 1, 4_000))
def test_what_is_said_again_is_what_was_said(script: list[tuple[int, int, int, str]], each: int) -> None:
    played = Played(each, 2 * each)

    def right() -> None:
        for tracks, some in zip(played.sessions, played.tracks, strict=True):
            for track in some:
                for number in range(track.count + 1):
                    again = list(track.after(number))
                    assert [said for said in played.said[track][number:] if said in again] == again
                    if not track.lost_after(number):
                        assert again == played.said[track][number:]
                    known = tracks.find(id_of(track.empty_event(number)))
                    assert known == ((track, number) if track.resumable else None)

    played.play(script, right)


@given(turns)
def test_nothing_is_lost_within_bounds(script: list[tuple[int, int, int, str]]) -> None:
    played = Played(1 << 20, 1 << 20)
    played.play([turn for turn in script if turn[3] != "e"], lambda: None)
    for track, said in played.said.items():
        assert list(track.after(0)) == said
        assert len({id_of(each) for each in said}) == len(said)


def test_a_stream_whose_client_knows_no_id_is_not_kept() -> None:
    tracks = EventStore(ReplayBudget(10_000, 10_000), 1.0)
    track = tracks.new(None)
    whole = track.first(only=True) + track.add(b'{"id":1}\n', last=True)
    assert whole.endswith(sse_event(b'{"id":1}\n'))
    assert (track.resumable, tracks.taken, tracks.find("1-0")) == (False, 0, None)


@given(st.text())
def test_any_text_is_an_id_or_none(text: str) -> None:
    tracks = EventStore(ReplayBudget(10_000, 10_000), 1.0)
    begun(tracks)
    assert (tracks.find(text) is None) == (text != "1-0")
    assert is_event_id(text) or tracks.find(text) is None
