"""What was recorded is replayed: the client's transcript is the same, byte for byte."""

import json
import os
import sys
import tempfile
from pathlib import Path

from helpers.recorded_sessions import Drawn, drawn_sessions, talk
from hypothesis import HealthCheck, given, settings
from mcpzip_fakes.launch import importable

PATIENT = 30.0
"""Seconds that the player waits for the client, which may be slower than it was."""


@given(drawn_sessions())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_recorded_session_over_stdio(drawn: Drawn) -> None:
    env = {**os.environ, **importable()}
    with tempfile.TemporaryDirectory() as folder:
        scenario, cassette = Path(folder, "scenario.json"), Path(folder, "drawn.toml")
        scenario.write_text(json.dumps(drawn.scenario), "utf-8")
        fake = [sys.executable, "-m", "mcpzip_fakes.stdio"]
        record = [sys.executable, "-m", "mcpzip_fakes", "record", str(cassette), "--"]
        recorded = talk([*record, *fake, str(scenario)], drawn, env)
        replayed = Path(folder, "replayed.json")
        played = {"name": "drawn", "replay": {"cassette": str(cassette), "patience": PATIENT}}
        replayed.write_text(json.dumps(played), "utf-8")
        again = talk([*fake, str(replayed)], drawn, env)
        assert again.output == recorded.output
        assert again.code == recorded.code
        assert again.errors == b"".join(
            line for line in recorded.errors.splitlines(True) if not line.startswith(b"mcpzip-fake record:")
        )
