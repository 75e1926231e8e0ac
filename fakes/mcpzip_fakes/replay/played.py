"""A cassette, ready to be played on one transport."""

import os
from collections.abc import Sequence

from mcpzip.cassettes.cassette import Cassette
from mcpzip_fakes.replay.eras import RecordedEras
from mcpzip_fakes.replay.matching import Matcher, Recorded, recorded
from mcpzip_fakes.replay.session import Session
from mcpzip_fakes.scenario import Replay, Scenario


class Played:
    """exchanges: those of the cassette; eras: those whose recorded messages can be sent; numbers: of the
    recorded sessions."""

    def __init__(self, scenario: Scenario, cassette: Cassette, transport: str) -> None:
        """transport: of the client."""
        self.exchanges: Sequence[Recorded] = recorded(cassette.exchanges)
        self.eras = RecordedEras(scenario, cassette, self.exchanges, transport)
        self.numbers = sorted({each.session for each in cassette.exchanges}) or [1]
        self._matcher = Matcher(self.exchanges, cassette.match)
        self._repeat = cassette.match.repeat
        replay = self._replay = scenario.replay or Replay(cassette=cassette.name)
        self._source = os.path.basename(replay.cassette)

    def session(self, run: int, now: float) -> Session:
        """The session of the ``run``-th client, from 1: it prefers the recorded session of this place, or
        else the last one. now: the time of its beginning."""
        return Session(
            self._source,
            self.exchanges if self.eras.usable else (),
            self._matcher,
            number=self.numbers[min(run, len(self.numbers)) - 1],
            repeat=self._repeat,
            timing=self._replay.timing,
            patience=self._replay.patience,
            now=now,
        )
