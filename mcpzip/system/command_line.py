"""A command line, in words."""

import os
import shlex


def split_command_line(text: str) -> list[str]:
    """``text`` split as a shell splits it, with its quotes taken off; nothing else of a shell happens.

    On Windows a backslash is an ordinary character, for that is how a path is written there. Raises
    ValueError for a quote that is not closed.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if os.name == "nt":
        lexer.escape = ""
    return list(lexer)
