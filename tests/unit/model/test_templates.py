"""Whether a URI can come from a template: as RFC 6570 expands it, and in no time whatever the two are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.limits import URI as LONGEST
from mcpzip.model.templates import MAX_EXPRESSIONS, matches


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://plain", "test://plain"),
        ("test://template/{id}/data", "test://template/123/data"),
        ("test://template/{id}/data", "test://template//data"),
        ("test://{a}-{b}.txt", "test://x-y-z.txt"),
        ("file:///{+path}", "file:///a/b/c.txt?x#y"),
        ("file:///{+path}x{name}", "file:///x/x1"),
        ("page:{#part}", "page:#top/1"),
        ("page:{#part}", "page:"),
        ("x:a{.ext}", "x:a.tar.gz"),
        ("x:{/path*}", "x:/a/b"),
        ("x:a{;p,q}", "x:a;p=1;q=2"),
        ("search:{?q,n}", "search:?q=1/2&n=3"),
        ("search:{?q,n}", "search:"),
        ("search:?fixed=1{&n}", "search:?fixed=1&n=2"),
        ("{+all}", "any:thing/at?all#"),
        ("送:{名}", "送:信"),
        ("x:{unclosed", "x:{unclosed"),
        ("", ""),
    ],
)
def test_a_uri_that_a_template_expands_to_matches(template, uri):
    assert matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://plain", "test://plain/"),
        ("test://plain", "test://plai"),
        ("test://template/{id}/data", "test://template/1/2/data"),
        ("test://template/{id}/data", "test://template/1/data/more"),
        ("test://template/{id}", "test://other/1"),
        ("x:{id}", "x:a?b"),
        ("x:{id}", "x:a#b"),
        ("page:{#part}", "page:top"),
        ("search:{?q}", "search:q=1"),
        ("search:{?q}", "search:?q=1#f"),
        ("x:{/path}", "x:/a?b"),
        ("x.y:{id}", "xzy:1"),
        ("", "x"),
    ],
)
def test_any_other_does_not(template, uri):
    assert not matches(template, uri)


LITERALS = st.text("ab/?#.", max_size=4)
VALUES = st.text("ab-.", max_size=4)


@given(
    parts=st.lists(
        st.tuples(LITERALS, st.sampled_from(["", "+", "#", ".", "/", ";", "?", "&"]), VALUES), max_size=4
    ),
    last=LITERALS,
)
def test_every_expansion_matches(parts, last):
    template = "".join(f"{literal}{{{operator}v}}" for literal, operator, _ in parts) + last
    leads = {"": "", "+": "", ";": ";v=", "?": "?v=", "&": "&v="}
    uri = "".join(f"{literal}{leads.get(operator, operator)}{value}" for literal, operator, value in parts)
    assert matches(template, uri + last)


@given(parts=st.lists(st.tuples(LITERALS, st.sampled_from(["{v}", "{+v}"])), max_size=4), uri=LITERALS)
def test_it_is_what_a_regular_expression_would_say(parts, uri):
    template = "".join(literal + expression for literal, expression in parts)
    values = {"{v}": "[^/?#]*", "{+v}": ".*"}
    pattern = "".join(re.escape(literal) + values[expression] for literal, expression in parts)
    assert matches(template, uri) == bool(re.fullmatch(pattern, uri, re.DOTALL))


def test_a_template_made_to_take_for_ever_does_not():
    # As a regular expression this one is tried in more ways than there are atoms.
    assert not matches("{+a}x" * 20 + "!", "x" * LONGEST)
    assert not matches("{+a}", "x" * (LONGEST + 1))
    assert matches("{+a}", "x" * LONGEST)
    assert matches("{a}" * MAX_EXPRESSIONS, "x")
    assert not matches("{a}" * (MAX_EXPRESSIONS + 1), "x")
