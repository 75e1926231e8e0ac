"""Splitting a command line into words."""

import os


def split_command_line(text: str) -> list[str]:
    """``text`` split into words as a POSIX shell splits it, without quotes. Nothing is expanded.

    On Windows a backslash is an ordinary character, because it separates folders in a path. Raises ValueError
    for a quote that is not closed.
    """
    import shlex  # few configs have such a command

    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if os.name == "nt":
        lexer.escape = ""
    return list(lexer)
