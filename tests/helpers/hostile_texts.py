"""Texts that a hostile server, client or file has people read: what terminals, rich and readers obey."""

from hypothesis import strategies as st

FORGED = "\x1b[38;5;77m"
"""A colour that nothing of ours has."""
PIECES = (
    *(
        FORGED,
        "\x1b[0m",
        "\x1b[2J\x1b[H",
        "\x1b[?1049h",
        "\x1bc",
        "\x1b",
        "\x9b2J",
        "\x9d0;t\x9c",
        "\x90q\x9c",
    ),
    *("\x1b]52;c;cm0gLXJm\x07", "\x1b]52;c;cm0gLXJm\x1b\\", "\x1b]0;title\x07", "\x1b]8;;http://e/\x1b\\x"),
    *("\r", "\b\b\b", "\x7f", "\x00", "\x07", "\x0b", "\x0c", "\x85", "\n", "\t", "\r\n"),
    *("\u202e", "\u2066", "\u200b", "\u2028", "\u2029", "\ufeff", "\u061c", "\U000e0041", "\U000e0101"),
    *("[/boom]", "[/x]", "[/]", "[bold]", "\\[/boom]", "[link=http://e/]l[/link]", "[green]connected[/]"),
    *(":smile:", "[@click=x]", "\\", "[", "]", "{task}", "%s", "\u0301" * 40, "\ud800", "\udc80"),
    *("connected", "日本語", "é", "👩\u200d💻", "a", " ", "http://example.com", "'q'", "3.14"),
)

hostile = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
writable = hostile.map(lambda text: text.replace("\ud800", "").replace("\udc80", ""))
"""Those that a file of UTF-8 can hold."""
