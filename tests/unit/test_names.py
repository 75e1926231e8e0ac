"""A joined name says its server and its tool, whatever they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.names import SEPARATOR, join, server_name_problem, split

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
