"""How `python -m bench` plays its turns: no process is started here."""

from bench.client import RefusedError
from bench.suite.figures import Shown
from bench.suite.place import Place, Setup
from bench.suite.probes import Note, Probe
from bench.suite.run import measure
from bench.suite.subjects import Subject

SUBJECTS = [Subject(Shown(key, key, "", "", peer=False)) for key in ("python", "sdk")]


def test_a_subject_that_fails_keeps_what_it_has_and_gets_no_more_turns() -> None:
    played: list[str] = []

    def play(place: Place, note: Note) -> None:
        played.append(place.subject.key)
        note("initialize", 1.0)
        if place.subject.key == "sdk":
            raise RefusedError("it closed its output")
        note("initialize", 3.0)

    probe = Probe("idle", Setup(), ("initialize", "memory"), play, rounds=3)
    found = {(one.quantity, one.subject): one for one in measure([probe], SUBJECTS, "python", 100)}
    assert played == ["python", "sdk", "python", "python"]
    assert found["initialize", "python"].values == (1.0, 3.0) * 3
    assert found["initialize", "sdk"].values == (1.0,)
    assert found["memory", "sdk"].why == "It closed its output."
    assert ("memory", "python") not in found, "a bare interpreter has no memory to measure"


def test_a_turn_for_which_the_time_is_too_short_is_left_out() -> None:
    def play(place: Place, note: Note) -> None:
        raise AssertionError("it was played")

    probe = Probe("idle", Setup(), ("initialize",), play, rounds=1, seconds=10)
    [bare, sdk] = measure([probe], SUBJECTS, "python", 5)
    assert (bare.values, sdk.values) == ((), ())
    assert bare.why == "Not measured: the time was up."


def test_each_turn_is_in_a_folder_of_its_own() -> None:
    folders: list[str] = []

    def play(place: Place, note: Note) -> None:
        folders.append(str(place.folder))

    measure([Probe("idle", Setup(), ("initialize",), play, rounds=2)], SUBJECTS, "python", 100)
    assert len(set(folders)) == 4
