"""The text of the config in a form, and the bytes of the file that a filled-in form stands for.

The rule: what a person didn't change keeps its bytes. A browser sends each line break as CR LF, so lines that
are equal keep the end that they had, and others get the one that the file has most.
"""

import errno
import hashlib
import os

import msgspec

from mcpzip.pins.difference import visible
from mcpzip.system.bounded_read import open_regular, read_limited, too_large
from mcpzip.ui.limits import CONFIG_TEXT
from mcpzip.ui.text_diff import lines_of, operations

NEW = '{\n  "mcpServers": {}\n}\n'
"""The text that a form begins with if there is no file."""
_HIDDEN = 20
"""Lines with hidden characters that are named."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ConfigText(msgspec.Struct, frozen=True):
    """A file. data: its content, None if there is none. text: without a byte order mark. problem: why it
    can't be edited here, without a full stop; "" if it can. target: where a link leads, "" for no link.
    """

    path: str
    data: bytes | None = None
    text: str = ""
    problem: str = ""
    target: str = ""

    @property
    def digest(self) -> str:
        """Names the content."""
        return digest(self.data)


def digest(data: bytes | None) -> str:
    """The SHA-256 of ``data``, hexadecimal; ``none`` for no file."""
    return "none" if data is None else hashlib.sha256(data).hexdigest()


def read(path: str) -> ConfigText:
    """The file at ``path``. It blocks."""
    target = os.path.realpath(path) if os.path.islink(path) else ""
    try:
        data = _content(path)
    except FileNotFoundError:
        return ConfigText(path, target=target)
    except OSError as error:
        why = error.strerror or str(error)
        problem = f"it is {why}" if error.errno == errno.EFBIG else f"it can't be read ({why})"
        return ConfigText(path, problem=problem, target=target)
    text, problem = text_of(data)
    return ConfigText(path, data, text, problem, target)


def text_of(data: bytes) -> tuple[str, str]:
    """The text in ``data``, and why it can't be edited, "" if it can."""
    if len(data) > CONFIG_TEXT:
        return "", f"it is larger than {CONFIG_TEXT:,} bytes"
    try:
        text = data.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    if "\0" in text:
        return "", "it contains a NUL, which no page can show"
    return text, ""


def data_of(form: str, before: bytes | None) -> bytes:
    """The bytes that a filled-in form stands for. before: the content that the form was made from."""
    mark = _BYTE_ORDER_MARK if before is not None and before.startswith(_BYTE_ORDER_MARK) else b""
    old = lines_of(text_of(before)[0]) if before is not None else []
    new = lines_of(form.replace("\r\n", "\n").replace("\r", "\n"))
    ends = [line[len(line.rstrip("\r\n")) :] for line in old]
    usual = max(("\n", "\r\n", "\r"), key=ends.count)
    if len(set(ends) - {""}) <= 1:
        made = [line.replace("\n", usual) for line in new]
    else:
        bodies = [line.rstrip("\r\n") for line in old]
        made = [line.replace("\n", usual) for line in new]
        for kind, begin, end, new_begin, _ in operations(bodies, [line.rstrip("\n") for line in new]):
            for at in range(begin, end) if kind == "equal" else ():
                number = new_begin + at - begin
                if new[number].endswith("\n") and ends[at]:
                    made[number] = bodies[at] + ends[at]
    return mark + "".join(made).encode("utf-8", "replace")


def hidden_lines(text: str) -> list[int]:
    """The numbers of the first lines with characters that nobody sees."""
    found: list[int] = []
    for number, line in enumerate(lines_of(text), 1):
        plain = line.rstrip("\r\n").replace("\t", " ")
        if visible(plain) != plain:
            found.append(number)
    return found[:_HIDDEN]


def _content(path: str) -> bytes:
    handle, state = open_regular(path)
    try:
        if state.st_size > CONFIG_TEXT:
            raise too_large(CONFIG_TEXT, path)
        return read_limited(lambda size: os.read(handle, size), CONFIG_TEXT, path)
    finally:
        os.close(handle)
