"""The commands that the documentation shows, and how each is tested.

The rule: every line of every ```sh block in README.md and docs/ is either run, or stands in `NOT_RUN` with
the reason. In other blocks a line that begins with one of our programs is one that it accepts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

REAL = ("docs/real-servers.md",)
"""The pages whose commands want the third-party servers; the others make do with fakes."""
SCRIPTS = ("docs/tutorial.md", "docs/cassettes.md")
"""The pages whose commands are steps: they are run one after another in one home. A block of Python that
begins with the name of a file, as in ``# test_time.py``, is that file."""

NOT_RUN = {
    r"python3 -m venv .+": "sets up an environment: .ci/run does so, see test_ci_does_what_the_readme_says",
    r"\.venv/bin/python -m pytest.*": "is this very test run",
    r"(\.venv/bin/)?nox\b.*": "would run this test in a test",
    r"(\.venv/bin/)?(python|python3) -m bench\b.*": "measures for minutes and asserts nothing",
    r"git clone .+": "fetches traces from the network",
    r"python3 tools/performance\.py .*": "wants what the benchmarks have measured",
    r"mcpzip-conformance install .*": "fetches from a registry",
    r"(claude|codex|gemini|code) .*": "other people's programs",
    r"(uv tool|pipx) .*": "fetches from a registry",
    r"npm ci --prefix tests/(e2e|suite)( .*)?": "fetches from a registry: .ci/run does so",
    r"(\S*/)?(uv )?pip install .*": "fetches from a registry",
    r"docker .+": "needs Docker: nox -s image does so, where it works",
    r"python tools/manifests\.py .*": "writes into the source: tests/test_manifests.py does so in a copy",
    r"mcpzip-fake .*--transport (http|sse)\b.*": "runs until it is stopped: tests/integration does so",
}
"""What is not run (a pattern for the whole command), and why."""

EXIT_CODES: dict[str, int] = {
    "mcpzip call git__git_show repo_path=. revision=nowhere": 1,
    "mcpzip migrate --undo": 2,  # nothing was migrated there
    "mcpzip call everything__simulate-research-query topic=proxies": 1,
}
"""Commands that are meant to fail, and with what; all others give 0."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """One command of a page."""

    page: str
    line: int
    text: str

    @property
    def excuse(self) -> str | None:
        """Why it is not run, or None."""
        return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, self.text)), None)


def pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """The fenced blocks in ``language`` and the line each begins on, without what they are indented by."""
    text = page.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        if fence[2] == language:
            body = re.sub(rf"^{fence[1]}", "", fence[3], flags=re.MULTILINE)
            yield text.count("\n", 0, fence.start(3)) + 1, body


def shown() -> Iterator[str]:
    """The command lines of our programs in blocks that aren't run: after a ``$``, or with nothing else."""
    for page in pages():
        for language, prefix in (("", r"(\$ )?"), ("console", r"\$ ")):
            for _, body in blocks(page, language):
                for line in re.sub(r"\\\n\s*", " ", body).splitlines():
                    if re.match(rf"{prefix}mcpzip(-\w+)? [a-z-]", line):
                        yield from line.removeprefix("$ ").split(" && ")


def commands() -> list[Command]:
    """All of them. ``&&`` and a backslash at the end of a line are understood; comments are dropped."""
    found = []
    for page in pages():
        for first, body in blocks(page, "sh"):
            whole = re.sub(r"\\\n\s*", " ", body)
            for number, line in enumerate(whole.splitlines()):
                command = re.sub(r"(^|\s)#\s.*$", "", line).strip()
                steps = [step.strip() for step in command.split(" && ")] if command else []
                found += [
                    Command(str(page.relative_to(ROOT).as_posix()), first + number, step) for step in steps
                ]
    return found
