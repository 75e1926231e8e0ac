"""Connections over TCP on loopback to which only processes of the same user can connect: where there are no
Unix domain sockets (`local_socket`).

The rules:

1. A file of the user's own, for nobody else to read, has the port and a random token. Both ends prove that
   they know the token before either says or parses anything else. So a process that has got the port since is
   sent nothing, and one that can't read the file is served nothing.
2. The token is never sent. Each end sends a nonce, and a keyed hash of both (BLAKE2, RFC 7693): the listener
   first, so that it shows itself before the other end does.

`server.shim` imports this module where it is needed, so it imports only small modules of the standard
library.
"""

import _socket  # see `local_socket`
import os
import time
from _blake2 import blake2b
from _operator import _compare_digest

TIMEOUT = 5.0
"""Seconds in which the other end has to prove that it knows the token."""
HOST = "127.0.0.1"
_MAGIC = b"mcpzip-loopback-1"
SIZE = 32
"""Bytes of a token, a nonce and a proof."""
_LONGEST_FILE = 200
LISTENER, CALLER = b"listener", b"caller"


def connect(path: str) -> "_socket.socket | None":
    """A non-blocking connection to the process that wrote ``path``; None if none of ours listens there.
    Raises TimeoutError if it is silent, other OSError if the system refuses a connection.
    """
    with open(path, "rb") as file:
        found = parse(file.read(_LONGEST_FILE))
    if found is None:
        return None
    port, token = found
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        connection.settimeout(TIMEOUT)
        connection.connect((HOST, port))
        mine = os.urandom(SIZE)
        connection.sendall(mine)
        said = receive(connection, 2 * SIZE)
        theirs, proof = said[:SIZE], said[SIZE:]
        if len(proof) == SIZE and is_same(proof, proof_of(token, LISTENER, mine, theirs)):
            connection.sendall(proof_of(token, CALLER, mine, theirs))
            prepare(connection)
            return connection
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        pass
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def written(port: int, token: bytes) -> bytes:
    """The content of the file."""
    return b"%s %d %s\n" % (_MAGIC, port, token.hex().encode())


def parse(text: bytes) -> "tuple[int, bytes] | None":
    """The port and the token in a file; None if it is none of ours."""
    magic, _, rest = text.partition(b" ")
    port, _, token = rest.strip().partition(b" ")
    try:
        found = int(port), bytes.fromhex(token.decode("ascii"))
    except ValueError:
        return None
    if magic != _MAGIC:
        return None
    return found if 0 < found[0] < 1 << 16 and len(found[1]) == SIZE else None


def proof_of(token: bytes, who: bytes, caller: bytes, listener: bytes) -> bytes:
    """What only ``who`` can say that knows the token, of the nonces of both."""
    return blake2b(caller + listener, key=token, person=who, digest_size=SIZE).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Compares two proofs in a time that says nothing of them."""
    return bool(_compare_digest(one, other))


def receive(connection: "_socket.socket", size: int, until: float = 0.0) -> bytes:
    """``size`` bytes; fewer at the end of the stream. until: monotonic s, by default in `TIMEOUT`. Raises
    OSError.
    """
    until = until or time.monotonic() + TIMEOUT
    data = b""
    while len(data) < size:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the other end is silent")
        connection.settimeout(left)
        if not (more := connection.recv(size - len(data))):
            break
        data += more
    return data


def prepare(connection: "_socket.socket") -> None:
    """Makes a connection non-blocking, and quick."""
    connection.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    connection.setblocking(False)
