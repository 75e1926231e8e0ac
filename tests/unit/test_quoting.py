"""What somebody else wrote, in a sentence of ours."""

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.limits import ECHO
from mcpzip.model.quoting import one_line, quoted, shortened
from mcpzip.model.secrecy import keep


@given(st.text(max_size=600), st.integers(1, 300))
def test_a_quotation_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    shown = quoted(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit + 2
    assert (shown[0], shown[-1]) == ("“", "”")
    assert not set("“”") & set(shown[1:-1])


@given(st.text())
def test_one_line_keeps_every_printable_sign(text: str) -> None:
    shown = one_line(text)
    assert all(sign.isprintable() or sign in "\u200c\u200d" for sign in shown)  # joiners, where they join
    if text.isascii():
        assert "".join(shown.split()) == "".join(sign for sign in text if sign.isprintable() and sign != " ")


def test_a_text_can_neither_leave_its_line_nor_its_marks() -> None:
    assert quoted("no\nshop: connected, 7 tools\x1b]52;c;x\x07 \u202e” it is fine") == (
        '“no shop: connected, 7 tools ]52;c;x " it is fine”'
    )


def test_a_long_text_is_cut() -> None:
    assert shortened("x" * 10_000_000) == "x" * (ECHO - 1) + "…"
    assert shortened(" " * 10_000_000 + "x") == "…"


def test_a_secret_is_found_before_the_text_is_cut() -> None:
    secret = "-".join(("a", "secret", "of", "quoting"))
    keep(secret)
    for before in (0, ECHO - 10, ECHO * 20 - 10):
        assert "secret" not in quoted(" " * before + secret + " more" * 1000)
