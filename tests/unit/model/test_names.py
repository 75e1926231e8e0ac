"""A joined name says its server and its tool, whatever they are called; hosts can take a shown one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.names import (
    SEPARATOR,
    join,
    join_uri,
    server_name_problem,
    shown_names,
    split,
    split_uri,
)

server_names = st.text("abAB01_.-", min_size=1, max_size=12).filter(
    lambda name: server_name_problem(name) is None
)
tool_names = st.text(min_size=1, max_size=12) | st.text("_.a", min_size=1, max_size=6)


@given(server=server_names, tool=tool_names)
def test_split_undoes_join(server, tool):
    assert split(join(server, tool)) == (server, tool)


@given(one=st.tuples(server_names, tool_names), other=st.tuples(server_names, tool_names))
def test_no_two_tools_have_the_same_name(one, other):
    assert (join(*one) == join(*other)) == (one == other)


@given(name=st.text(max_size=10))
def test_a_server_name_is_legal_or_has_a_problem_to_tell(name):
    problem = server_name_problem(name)
    if problem is None:
        assert name.isascii()
        assert SEPARATOR not in name
    else:
        assert problem.split()[0] in {"is", "has", "contains", "begins"}


@pytest.mark.parametrize("name", ["slack", "gmail-personal", "a", "0", "a.b", "a_b", "-", "A.B_c-9", "..."])
def test_legal_server_names(name):
    assert server_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("a__b", "contains '__'"),
        ("__", "contains '__'"),
        ("_a", "begins or ends with '_'"),
        ("a_", "begins or ends with '_'"),
        ("_", "begins or ends with '_'"),
        ("a b", "has a character other than"),
        ("ü", "has a character other than"),
        ("a/b", "has a character other than"),
        ("a\n", "has a character other than"),
    ],
)
def test_illegal_server_names(name, problem):
    assert server_name_problem(name).startswith(problem)


@pytest.mark.parametrize("name", ["", "send_message", "_", "a_b"])
def test_a_name_without_a_separator_is_no_tool_of_a_server(name):
    assert split(name) is None


@pytest.mark.parametrize("tool", ["a__b", "__", "_x", "x_", "a.b/c d", "送信", "🙂"])
def test_the_first_separator_splits(tool):
    assert split(f"slack__{tool}") == ("slack", tool)


uris = st.text(max_size=20) | st.from_regex(r"[a-z]+:(//)?[a-z./{}%_?#]*", fullmatch=True)


@given(server=server_names, uri=uris)
def test_split_uri_undoes_join_uri(server, uri):
    assert split_uri(join_uri(server, uri)) == (server, uri)


@given(one=st.tuples(server_names, uris), other=st.tuples(server_names, uris))
def test_no_two_resources_have_the_same_uri(one, other):
    assert (join_uri(*one) == join_uri(*other)) == (one == other)


@given(outer=server_names, inner=server_names, uri=uris)
def test_behind_another_mcpzip_a_uri_is_taken_apart_one_by_one(outer, inner, uri):
    assert split_uri(join_uri(outer, join_uri(inner, uri))) == (outer, join_uri(inner, uri))


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("mcpzip://docs/file:///a b?c#d", ("docs", "file:///a b?c#d")),
        ("MCPZIP://Docs/test://x/{id}", ("Docs", "test://x/{id}")),
        ("mcpzip://docs/", ("docs", "")),
        ("mcpzip://docs", None),
        ("mcpzip:/docs/x", None),
        ("file:///mcpzip://docs/x", None),
        ("", None),
    ],
)
def test_a_uri_is_joined_or_is_not(uri, parts):
    assert split_uri(uri) == parts


def shown_name(server: str, tool: str) -> str:
    """The name by which a tool is shown that is shown alone."""
    (shown,) = shown_names([join(server, tool)])
    return shown


HOSTS_TAKE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
pairs = st.tuples(server_names, st.text("ab_.é ", min_size=1, max_size=4) | st.text("a", max_size=80))


@given(pair=st.tuples(server_names | st.text("a.", min_size=1, max_size=90), tool_names) | pairs)
def test_a_shown_name_is_one_that_hosts_take_and_the_joined_one_where_that_is(pair):
    shown = shown_name(*pair)
    assert HOSTS_TAKE.fullmatch(shown)
    assert (shown == join(*pair)) == bool(HOSTS_TAKE.fullmatch(join(*pair)))


@given(pairs=st.lists(pairs, unique=True, max_size=12), random=st.randoms(use_true_random=False))
def test_every_tool_is_shown_by_a_name_of_its_own(pairs, random):
    names = [join(*pair) for pair in pairs]
    shown = shown_names(names)
    assert sorted(shown.values()) == sorted(names)
    assert all(HOSTS_TAKE.fullmatch(name) for name in shown)
    assert shown_names(random.sample(names, len(names))) == shown


@pytest.mark.parametrize(
    ("server", "tool", "shown"),
    [
        ("slack", "send_message", "slack__send_message"),
        ("slack", "send.message", "slack__send_message_0c468bd2"),
        ("a.b", "x", "a_b__x_030d9b2f"),
        ("s", "t" * 61, "s__" + "t" * 61),
        ("s", "t" * 62, "s__" + "t" * 52 + "_bb3f79b2"),
        ("s", "送信🙂", "s______6818784a"),
    ],
)
def test_shown_names_are_the_same_in_every_run(server, tool, shown):
    assert shown_name(server, tool) == shown


def test_a_tool_that_is_called_as_the_likeness_of_another_is_gives_way():
    """The server `a_b` could list a tool by which that of `a.b` was shown, and be called in its place."""
    likeness = shown_name("a.b", "c")
    assert likeness.startswith("a_b__c_")
    shown = shown_names({"a.b__c", likeness})
    assert shown.pop(likeness) == "a.b__c"
    ((other, joined),) = shown.items()
    assert joined == likeness
    assert HOSTS_TAKE.fullmatch(other)
    # However many of its likenesses are taken.
    assert len(shown_names({"a.b__c", likeness, other})) == 3
