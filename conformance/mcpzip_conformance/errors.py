"""Every error of the runner.

McpzipError
├── ConfigError
│   ├── SubjectError      a subject file can't be used: file, key path, what was found, what would do
│   └── ExpectationError  a file of known failures can't be used; in `known_failures`
├── InstallError          a proxy isn't installed, or couldn't be
├── ReportError           a file is no report; in `report.as_json`
└── SelectionError        a subject, group, check or level that isn't there

Exception
├── Finding               what a check found wrong with the subject: a sentence, and a diff where there is one
│   ├── NoAnswerError     a request stayed unanswered
│   └── GoneError         the process ended, or closed its output, under a request
├── NotPlayableError      the subject's way to its servers rules the scene out: the check is skipped
└── ControlError          the fake itself did not do what the scene says: nothing is known of the subject
"""

from mcpzip.model import sanitize
from mcpzip.model.errors import ConfigError, McpzipError
from mcpzip.model.redaction import redact


class SubjectError(ConfigError):
    """A subject can't be used. ``file``, ``path``, ``found``, ``remedy``: see `ConfigError`."""


class InstallError(McpzipError):
    """A proxy isn't installed, or couldn't be: why, with the last lines of the output of its package manager,
    and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.args = (sanitize.lines(redact(text)),)


class SelectionError(McpzipError):
    """A requested name that doesn't exist."""


class Finding(Exception):
    """A requirement that the subject does not meet.

    summary: one sentence. diff: lines of a unified diff, direct against through the subject, or empty.
    """

    def __init__(self, summary: str, diff: tuple[str, ...] = ()) -> None:
        self.summary, self.diff = summary, diff
        super().__init__(summary)


class NoAnswerError(Finding):
    """A request got no answer in time."""


class GoneError(Finding):
    """The other side ended before it answered."""


class ControlError(Exception):
    """The direct side failed: an error of the runner or the machine."""


class NotPlayableError(Exception):
    """The scene can't be played through this subject. The message is the reason."""
