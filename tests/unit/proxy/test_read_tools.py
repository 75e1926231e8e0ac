"""Which tools `execute_read_tool` runs: those that read, as the config and the annotations have it, and no
others.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import Config, parse
from mcpzip.model.entry import Entry
from mcpzip.model.errors import CallRefusedError
from mcpzip.model.risk import RISK_CLASSES
from mcpzip.policy.decision import Decisions
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.read_tools import ReadTools


def config(risk: Any = None, name: str = "git", **keys: Any) -> Config:
    servers = {name: {"command": "x", "risk": risk}}
    document = {"mcpServers": servers, "expose": {"split": True}, **keys}
    return parse(json.dumps(document).encode(), "/c.json", {}, strict=True)


def entry(tool: str = "look", annotations: Any = None, server: str = "git") -> Entry:
    return Entry.parse(server, json.dumps({"name": tool, "annotations": annotations}).encode())


READS = {"readOnlyHint": True}


@pytest.mark.parametrize(
    ("risk", "annotations", "reads"),
    [
        (None, READS, True),
        (None, {"readOnlyHint": True, "openWorldHint": True}, True),
        (None, {"readOnlyHint": True, "destructiveHint": True}, True),  # which says nothing of one that reads
        (None, None, False),
        (None, {}, False),
        (None, {"destructiveHint": False}, False),
        (None, {"readOnlyHint": "true"}, False),
        (None, {"readOnlyHint": 1}, False),
        (None, [READS], False),
        ({"*": "reads"}, None, True),
        ({"look": ["reads", "reaches_out"]}, None, True),
        ({"*": "reads", "look": "writes"}, READS, False),
        ({"*": "destroys", "lo*": "reads"}, None, True),
        ({"look": "reaches_out"}, READS, True),
        ({"look": "reaches_out"}, None, False),
        ({"other": "writes"}, READS, True),
    ],
)
def test_a_tool_reads_if_its_class_says_so(risk: Any, annotations: Any, reads: bool) -> None:
    assert (entry(annotations=annotations) in ReadTools(config(risk))) is reads


CLASSES = st.lists(st.sampled_from(RISK_CLASSES), min_size=1, unique=True).filter(
    lambda named: "reads" not in named or {"writes", "destroys"}.isdisjoint(named)  # else it is an error
)
GLOBS = st.sampled_from(["*", "l*", "look", "?ook", "write", "*k"])
HINTS = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "openWorldHint"]),
    st.sampled_from([True, False, None, "yes", 1]),
)


@given(st.dictionaries(GLOBS, CLASSES), HINTS, st.sampled_from(["look", "write"]))
def test_it_is_the_class_that_the_policy_knows(risk: Any, hints: Any, tool: str) -> None:
    said, found = config(risk), entry(tool, hints)
    reads, known = ReadTools(said), Decisions(said).risk(found)
    assert (found in reads) == (known.classes[0] == "reads")
    if found in reads:
        reads.check(found)
    else:
        with pytest.raises(CallRefusedError) as refused:
            reads.check(found)
        assert f"the class of git__{tool} is: {known.words}." in str(refused.value)


def test_a_refusal_says_what_to_do() -> None:
    with pytest.raises(CallRefusedError) as refused:
        ReadTools(config()).check(entry("merge"))
    assert str(refused.value) == (
        "execute_read_tool runs only tools that read, and the class of git__merge is: writes, may destroy, "
        "reaches out. Nothing ran. Call it with execute_tool."
    )
    assert refused.value.outcome == "not read-only"


def test_of_our_own_tools_only_the_status_reads() -> None:
    """Whatever a config says of a server that has the same name and offers the same."""
    for risk in (None, {"*": "reads"}, {"*": "destroys"}):
        reads = ReadTools(config(risk, "mcpzip"))
        assert [each.tool for each in ADMIN_TOOLS if each in reads] == ["proxy_status"]
        copies = [Entry.parse("mcpzip", each.raw) for each in ADMIN_TOOLS]
        assert [each in reads for each in copies] == {
            "None": [True, False], "reads": [True, True], "destroys": [False, False]
        }[str((risk or {}).get("*"))]  # fmt: skip
    with pytest.raises(CallRefusedError, match=r"the class of proxy_refresh is: writes\. Nothing ran"):
        ReadTools(config()).check(next(each for each in ADMIN_TOOLS if each.tool == "proxy_refresh"))


@pytest.mark.parametrize("other", [None, "git__look", b"", 5])
def test_what_is_no_tool_is_not_among_them(other: object) -> None:
    assert other not in ReadTools(config({"*": "reads"}))
