"""A person's web browser.

The rule: it is theirs. It gets neither our terminal nor our end: it is started from a process of its own,
without our three streams, and is left running.
"""

import subprocess
import sys
from collections.abc import Mapping

_OVER_SSH = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_HAVE_A_SCREEN = ("win32", "darwin", "cygwin")

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


def why_no_browser(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """Why no browser that this person sees can be opened from here, as part of a sentence; "" when one can.

    ``$BROWSER`` (what the standard library's `webbrowser` starts) settles it.
    """
    if env.get("BROWSER"):
        return ""
    if any(env.get(name) for name in _OVER_SSH):
        return "this session came over SSH"
    if platform not in _HAVE_A_SCREEN and not any(env.get(name) for name in _DISPLAYS):
        return "there is no display here"
    return ""


def open_browser(url: str, env: Mapping[str, str]) -> bool:
    """Opens ``url``, an http or https one. False when no browser could be started.

    Blocks until the browser has taken it, which for one that stays in the foreground is its end.
    """
    if not url.startswith(("https://", "http://")):
        raise ValueError("not a web page")
    own = dict(env)
    if not own.get("BROWSER"):
        own.pop("TERM", None)  # `webbrowser` then leaves out those that would run in the terminal
    options: dict[str, int | bool] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW}
    nothing = subprocess.DEVNULL
    try:
        opener = subprocess.Popen(
            [sys.executable, "-I", "-c", _OPEN, url],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            env=own,
            **options,  # type: ignore[call-overload]
        )
    except OSError:
        return False
    code: int = opener.wait()
    return code == 0
