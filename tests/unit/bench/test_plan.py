"""The order of the turns of `python -m bench`."""

from bench.suite.figures import Shown
from bench.suite.place import Place, Setup
from bench.suite.plan import turns
from bench.suite.probes import Note, Probe
from bench.suite.subjects import Subject

A, B, C = (Subject(Shown(key, key, "", "", peer=False)) for key in ("python", "sdk", "direct"))


def nothing(place: Place, note: Note) -> None: ...


def probe(quantity: str, rounds: int) -> Probe:
    return Probe("catalog", Setup(), (quantity,), nothing, rounds)


def played(*probes: Probe) -> list[str]:
    return [f"{number} {one.notes[0]} {who.key}" for number, one, who in turns(probes, [A, B, C])]


def test_every_subject_has_its_turn_in_every_round_and_another_is_first() -> None:
    assert played(probe("initialize", 2)) == [
        "0 initialize python",
        "0 initialize sdk",
        "0 initialize direct",
        "1 initialize sdk",
        "1 initialize direct",
        "1 initialize python",
    ]


def test_probes_alternate_and_end_after_their_own_rounds() -> None:
    rounds = [turn.split()[:2] for turn in played(probe("initialize", 1), probe("memory", 2))]
    assert rounds == [["0", "initialize"]] * 3 + [["0", "memory"], ["1", "memory"]]


def test_without_probes_there_are_no_turns() -> None:
    assert played() == []
