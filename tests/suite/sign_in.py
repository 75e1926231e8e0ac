"""The person at the machine who signs in, as the scenarios of authorization need one.

The rule: a person knows what mcpzip says, and no more: runs the command that it names, opens the URL which
that prints, and agrees to everything. What stands for the browser follows redirects and shows nothing.
"""

import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence

_TOLD = re.compile(r"\bRun: mcpzip (auth login .+?)(?:\. [A-Z]|$)", re.MULTILINE)
_PAGE = re.compile(r"https?://\S+[?&]response_type=code\b\S*")
_LOGIN_TIMEOUT = 30
"""Seconds; nobody has to think here."""
_PAGE_TIMEOUT = 20.0
"""Seconds a page may take."""

_browser = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def told_to_sign_in(text: str) -> list[str] | None:
    """The words after ``mcpzip`` of the command that ``text`` says to run."""
    told = _TOLD.search(text)
    if told is None:
        return None
    return shlex.split(told[1] if os.name != "nt" else told[1].replace("\\", "\\\\"))


def sign_in(mcpzip: Sequence[str], environment: Mapping[str, str], told: Sequence[str]) -> None:
    """Runs what was ``told`` to its end. mcpzip: how that is started. RuntimeError when it fails."""
    words = [*mcpzip, *told, "--no-browser", "--timeout", str(_LOGIN_TIMEOUT)]
    print(f"$ {' '.join(words)}", file=sys.stderr)
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(f"  {line.rstrip()}", file=sys.stderr)  # the suite keeps it with its report
            for page in _PAGE.findall(line):
                _open(page)
    if process.returncode:
        raise RuntimeError(f"mcpzip {' '.join(told)} ended with {process.returncode}")


def _open(page: str) -> None:
    try:
        with _browser.open(page, timeout=_PAGE_TIMEOUT) as shown:
            print(f"  ({shown.status} at {shown.url.partition('?')[0]})", file=sys.stderr)
    except urllib.error.HTTPError as error:
        print(f"  ({error.code} at {error.url.partition('?')[0]})", file=sys.stderr)
    except OSError as error:
        print(f"  (no page: {error})", file=sys.stderr)
