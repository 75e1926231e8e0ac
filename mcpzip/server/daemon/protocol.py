"""What `mcpzip serve` and the daemon say to each other, besides the messages of MCP (pure).

The one that connects sends a greeting, one line of JSON. `mcpzip serve` sends after it, in this order, the
messages that were answered before (``replay`` bytes), and the messages of its client as they come. The daemon
answers with notices and with messages of MCP; each takes one line, and a notice begins with ``!``, which no
message does. Commands (`mcpzip ps` and others) get one notice as the answer.

The rule: the number in the name of the socket is that of this protocol. Nothing here may change without it.

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import json
import os

from mcpzip import __version__
from mcpzip.config.paths import daemon_path
from mcpzip.system.local_socket import LONGEST_PATH

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL = 1
MARK = b"!"
"""The first byte of a notice."""
ACCEPTED, REFUSED, WARNING, HANDOVER, ANSWER = b"!ok", b"!no", b"!warning", b"!handover", b"!answer"
"""Notices. ACCEPTED: with the daemon's process id; REFUSED: the client is to be served without a daemon,
perhaps with the reason for its stderr; WARNING: a sentence for the client's stderr; HANDOVER: this daemon
ends, and has processed so many bytes of the client's messages; ANSWER: to a command.
"""
LISTENING, HELD, FAILED = b"listening", b"held", b"failed"
"""What a daemon that was started prints. HELD: another daemon has the lock."""

RETIRING, ENDING = "retiring-", ".sock"
"""How the names of such sockets begin and end."""


def socket_and_lock(config: str, project: str) -> "tuple[str, str]":
    """The paths of the daemon's socket and lock for a config and a project's file ("" for none).

    The socket lies beside the config, or in a folder of this user in ``/tmp`` if that path is too long for a
    socket; neither depends on the environment, which differs between clients.
    """
    path = daemon_path(config, project, os.uname().nodename if hasattr(os, "uname") else "")
    name = f"{path}.{PROTOCOL}.sock"
    if len(os.fsencode(name)) > LONGEST_PATH and hasattr(os, "geteuid"):
        name = f"/tmp/mcpzip-{os.geteuid()}/{os.path.basename(name)}"
    return name, f"{path}.lock"


def retiring_socket(path: str, pid: int) -> str:
    """Where the daemon with the process id ``pid``, which listened at ``path``, takes commands while a newer
    one has taken its place.
    """
    return os.path.join(os.path.dirname(path), f"{RETIRING}{pid}{ENDING}")


def client_greeting(
    replay: bytes, environment: "Mapping[str, str]", folder: str, *, continued: bool
) -> bytes:
    """The greeting of a `mcpzip serve` whose client is in ``folder``, followed by ``replay``. continued:
    whether another daemon has served it before; then it does not make an older daemon give way, so that two
    versions can't replace each other for ever.
    """
    said = {
        "pid": os.getpid(),
        "agent": os.getppid(),
        "folder": folder,
        "environment": dict(environment),
        "replay": len(replay),
        "continued": continued,
    }
    return greeting("client", said) + replay


def greeting(kind: str, said: "Mapping[str, object]") -> bytes:
    """The greeting of a "client", or of a command, with what belongs to it."""
    line = json.dumps({"protocol": PROTOCOL, "version": __version__, "kind": kind, **said})
    return line.encode("utf-8", "surrogatepass") + b"\n"


def notice(name: bytes, value: object = None) -> bytes:
    """A notice, with a JSON value, or with a JSON text on one line (bytes)."""
    return name + b" " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n"


def read_notice(line: bytes) -> "tuple[bytes, object]":
    """The name and the value of the notice on ``line``; (b"", None) for anything else."""
    name, _, value = line.strip().partition(b" ")
    try:
        return name, json.loads(value)
    except ValueError:
        return b"", None


def is_newer(version: str) -> bool:
    """Whether ``version`` is newer than this mcpzip."""
    return _numbers(version) > _numbers(__version__)


def _numbers(version: str) -> "tuple[int, ...]":
    """Orders versions by their numbers (semver.org). A part that is no number counts as 0."""
    return tuple(int(part) if part.isdecimal() and len(part) < 10 else 0 for part in version.split(".")[:4])
