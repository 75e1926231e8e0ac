"""Ends the servers if the relay is killed.

The rule: the servers end with the relay, even if it is killed and can't end them itself.
"""

import os
import subprocess

# It waits for the end of the pipe that only we hold, and then ends the server's group.
_GUARD = 'read -r _; kill -KILL "-$0" 2>/dev/null'


def guard(group: int) -> "subprocess.Popen[bytes] | None":
    """Start a shell that ends the process group when the relay has died; None on Windows."""
    if os.name != "posix":
        return None
    return subprocess.Popen(["sh", "-c", _GUARD, str(group)], stdin=subprocess.PIPE, start_new_session=True)
