"""Ends the servers if the relay is killed.

The rule: however we end, our servers end; being killed leaves no time to see to it.
"""

import os
import subprocess

# It waits for the end of the pipe that only we hold, and then ends the server's group.
_GUARD = 'read -r _; kill -KILL "-$0" 2>/dev/null'


def guard(group: int) -> "subprocess.Popen[bytes] | None":
    """A shell that outlives us just long enough to end the group; None on Windows."""
    if os.name != "posix":
        return None
    return subprocess.Popen(["sh", "-c", _GUARD, str(group)], stdin=subprocess.PIPE, start_new_session=True)
