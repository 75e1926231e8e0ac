"""Opening the user's web browser.

The browser is started by a process with a session of its own and without our standard streams, so that it
neither writes to our terminal nor ends with us.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_OVER_SSH = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_ALWAYS_HAVE_A_DISPLAY = ("win32", "darwin", "cygwin")

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


def why_no_browser(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """Why no browser can be opened on the user's screen, as part of a sentence; "" if one can.

    If ``$BROWSER`` is set, the standard library's `webbrowser` starts that program, so one can.
    """
    if env.get("BROWSER"):
        return ""
    if any(env.get(name) for name in _OVER_SSH):
        return "this session came over SSH"
    if platform not in _ALWAYS_HAVE_A_DISPLAY and not any(env.get(name) for name in _DISPLAYS):
        return "there is no display here"
    return ""


def open_browser(url: str, env: Mapping[str, str]) -> bool:
    """Opens ``url`` (http or https). Returns whether a browser was started.

    Blocks until the program that opens the page exits; a browser that stays in the foreground exits when the
    user closes it. Raises ValueError for another scheme.
    """
    if not url.startswith(("https://", "http://")):
        raise ValueError("not a web page")
    return _open(url, env)


def open_page(path: str, env: Mapping[str, str]) -> bool:
    """Opens the HTML file at ``path``, which is absolute; as `open_browser`. Other users see the command
    lines of our processes, so a URL with a secret belongs into a file that only its owner can read.
    """
    return _open(Path(path).as_uri(), env)


def _open(url: str, env: Mapping[str, str]) -> bool:
    child_env = dict(env)
    if not child_env.get("BROWSER"):
        child_env.pop("TERM", None)  # without it, `webbrowser` starts no browser that runs in the terminal
    options: dict[str, int | bool] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW}
    try:
        opener = subprocess.Popen(
            [sys.executable, "-I", "-c", _OPEN, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_env,
            **options,  # type: ignore[call-overload]
        )
    except OSError:
        return False
    return bool(opener.wait() == 0)
