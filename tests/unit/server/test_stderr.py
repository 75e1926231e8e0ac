"""What is said on stderr: one line a complaint, no secret, and nothing in it that a terminal obeys."""

import logging
import sys
import threading

import pytest

from mcpzip.model.redaction import register
from mcpzip.server.stderr import print_traceback, sanitize_logs, warn

HOSTILE = "no \x1b]52;c;cm0gLXJm\x1b\\ \u202e\r\nmcpzip: all is well s3cret-value"
SHOWN = "no \\x1b]52;c;cm0gLXJm\\x1b\\ \\u202e mcpzip: all is well …"

Capture = pytest.CaptureFixture[str]


def test_a_complaint_is_one_harmless_line(capsys: Capture) -> None:
    register("s3cret-value")
    warn(HOSTILE)
    assert capsys.readouterr().err == f"mcpzip: {SHOWN}\n"


def test_a_crash_is_told_harmlessly(capsys: Capture) -> None:
    register("s3cret-value")
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        print_traceback(ValueError, error, error.__traceback__)
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "\\x1b]52;c;" in said
    assert [sign for sign in said if not sign.isprintable() and sign != "\n"] == []
    assert "s3cret-value" not in said


def test_what_libraries_log_and_what_ends_a_thread_is_told_so(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("s3cret-value")
    last = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging, "lastResort", last)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    sanitize_logs()
    last.emit(logging.LogRecord("asyncio", logging.ERROR, "f", 1, HOSTILE, None, None))

    def end() -> None:
        raise ValueError(HOSTILE)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    said = capsys.readouterr().err
    assert said.count("\\x1b]52;c;") == 2
    assert [sign for sign in said if not sign.isprintable() and sign != "\n"] == []
    assert "s3cret-value" not in said
