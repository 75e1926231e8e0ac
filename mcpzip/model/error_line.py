"""Finds the line of a program's stderr that says why the program ended (pure).

The rule: the patterns of `_TELLING` are tried in order. Of the lines that fit the first successful one the
last is shown, because older lines may be of an earlier problem that did no harm. The cause that an exception
names below itself is appended. If no pattern fits, it is the last line that isn't noise: a stack frame, a
version, a hint where a log lies.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from mcpzip.model.lazy_pattern import lazy_pattern

_LENGTH = 1_000
"""Characters of a line that the patterns see."""
_CONTINUED = 4
"""Lines that one message of uv may have: it breaks sentences at 80 columns."""

_STYLE = lazy_pattern(r"\x1b\[[\d;]*m")
_FRAME = lazy_pattern(r"^[\s|+×╰├─▶│]+")
"""What Python's exception groups and uv write before a message."""
_TREE = ("╰─▶", "├─▶")

_EXCEPTION = r"(?:[\w$]+\.)*[A-Z][\w$]*(?:Error|Exception|Exit|Interrupt|Rejection)(?: \[\w+\])?"
"""The name of an exception in Python, JavaScript or Java; also with the code that Node adds."""

_NPM = "npm (?:error|ERR!)"

_TELLING = tuple(
    map(
        lazy_pattern,
        (
            # npm, npx
            rf"{_NPM} (?:Error: |\d{{3}} [A-Z](?!ote)|notarget No|network request|enoent Could|could not )",
            # uv, uvx
            r"Because |An executable named ",
            # Go, Rust
            r"(?:panic|fatal error): \S|.*\bpanicked at ",
            # an exception that ended the program; "Error" alone is below, because programs log it too
            r"Exception in thread \"[^\"]*\" \S|Uncaught \S",
            rf"(?:Error \[\w+\]|(?!ExceptionGroup){_EXCEPTION}): \S",
            # a program that can't be started
            r".*: (?:command )?not found$|.*(?:executable file not found in|is not recognized as an? )",
            r".*(?:can't open file|No module named|Cannot find (?:module|package)|cannot execute)",
            r"docker: |.*(?:Error response from daemon|Cannot connect to the Docker daemon)",
            # any program
            r"(?:[\w./\\-]+: )?(?i:error|fatal|critical)(?:\[\w+\])?: \S",
            r"\[?(?:ERROR|FATAL|CRITICAL|error|fatal)\b\]?[ :]+\S|.*[\s\[|](?:ERROR|FATAL|CRITICAL)[\s\]|:]",
            r".*(?:\blevel=|\"level\": ?\")(?:error|fatal)\b",
            r".*\b(?:No such file or directory|[Pp]ermission denied|EACCES|EADDRINUSE|ECONNREFUSED|ENOENT)\b",
            rf"{_EXCEPTION}$",
        ),
    )
)
"""The best first. They see a line without colours and without `_FRAME`."""

_CAUSE = lazy_pattern(r"\s*(?:Caused by|\[cause\]): (\S.*)")

_NOISE = lazy_pattern(
    "|".join(
        (
            # stack traces
            r"\s*at \S|\s+File \"|\t|\s+\d+: |\s+\.\.\. \d+ more|goroutine \d|created by |[^\s(]+\(.*\)$",
            r"node:[\w/]+(?::\d+)?|.*:\d+$|\[signal |throw |raise |Traceback |stack backtrace:",
            r"During handling|The above exc",
            # the members of an error, brackets, and marks below source code
            r"\s+\w+: |[\s{}()\[\],;|+^~-]*$",
            # versions, where more is told, what worked
            r"(?:Node\.js|Bun|Deno) v?\d|exit status \d|note: |hint: |help: |(?i:usage:)|For more info",
            r"(?:Try|See|Run) ['`]|\(Use `|operable program|OpenJDK |Unable to find image|Debugger ",
            rf"npm (?:notice|warn|WARN)|{_NPM}(?:$| A complete log| (?:code|errno|syscall|path|\d{{3}})\b)",
            r"(?:Downloading|Building|Resolved|Prepared|Installed|Uninstalled|Using|Creating) ",
            r"(?i:warn(?:ing)?)\b",
        )
    )
)


def error_line(lines: Iterable[str]) -> str:
    """The line that says why a program ended, without colours and decoration; "" if there is none.

    lines: the last lines of its stderr, oldest first.
    """
    plain = [_STYLE.sub("", line).rstrip() for line in lines]
    bare = [_FRAME.sub("", line) for line in plain]
    for pattern in _TELLING:
        found = [at for at, line in enumerate(bare) if pattern.match(line, 0, _LENGTH)]
        if found:
            return _with_cause(plain, _message(plain, bare, found[-1]), found[-1])
    said = [at for at, text in enumerate(bare) if text]
    telling = [at for at in said if not _NOISE.match(plain[at], 0, _LENGTH)]
    return bare[(telling or said)[-1]] if said else ""


def _message(plain: Sequence[str], bare: Sequence[str], at: int) -> str:
    """The line ``at``, or what continues it: the rest of uv's sentence, or the message below Rust's place."""
    if plain[at].lstrip().startswith(_TREE):
        indent = len(plain[at]) - len(bare[at])
        rest = takewhile(lambda line: line[:indent].isspace(), plain[at + 1 : at + 1 + _CONTINUED])
        return " ".join((bare[at], *map(str.strip, rest)))
    if "panicked at " in bare[at] and bare[at].endswith(":") and any(bare[at + 1 : at + 2]):
        return bare[at + 1]
    return bare[at]


def _with_cause(plain: Sequence[str], message: str, at: int) -> str:
    """``message`` of the line ``at``, with the last of the causes that follow it."""
    causes = [line[found.start(1) :] for line in plain[at + 1 :] if (found := _CAUSE.match(line, 0, _LENGTH))]
    return f"{message}; caused by: {causes[-1]}" if causes else message
