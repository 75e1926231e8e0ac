"""Scenarios as data: what a file may say, and the one sentence each mistake gets."""

import json
from pathlib import Path

import mcpzip_fakes
import pytest
from mcpzip_fakes.definitions import Tool
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.faults import KINDS
from mcpzip_fakes.launch import described
from mcpzip_fakes.scenario import Scenario, names


def load(tmp_path: Path, text: str) -> Scenario:
    file = tmp_path / "shop.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_a_definition_is_sent_as_it_stands(tmp_path: Path) -> None:
    told = load(
        tmp_path,
        """
        [[tools]]
        zebra = 1
        name = "pay"
        description = "Pay."
        inputSchema = '{"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "null"}}}'
        annotations = { readOnlyHint = true, "x-vendor" = [1, 2] }
        result = { text = "paid" }
        """,
    )
    assert told.name == "shop"
    assert list(json.loads(told.tools[0].raw).items()) == [
        ("zebra", 1),
        ("name", "pay"),
        ("description", "Pay."),
        ("inputSchema", {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "null"}}}),
        ("annotations", {"readOnlyHint": True, "x-vendor": [1, 2]}),
    ]
    assert list(json.loads(told.tools[0].raw)["inputSchema"]["properties"]) == ["b", "a"]


def test_a_raw_definition_is_not_touched(tmp_path: Path) -> None:
    told = load(tmp_path, """tools = [{ raw = '{"name" :"x","inputSchema": {},  "n":1.0}' }]""")
    assert told.tools[0].raw == '{"name" :"x","inputSchema": {},  "n":1.0}'
    assert told.tools[0].name == "x"


def test_a_tool_without_a_schema_takes_any_object() -> None:
    assert Tool.make("t").definition()["inputSchema"] == {"type": "object"}


@pytest.mark.parametrize("name", names())
def test_every_shipped_scenario_loads_and_survives_being_saved(name: str, tmp_path: Path) -> None:
    told = Scenario.load(name)
    assert told.name in (name.rpartition("/")[2], "slakc")  # it looks like slack
    assert told.about
    assert Scenario.load(told.save(tmp_path / "again.json")) == told
    tools = told.all_tools()
    assert tools
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        schema = tool.definition()["inputSchema"]
        assert isinstance(schema, dict)
        assert schema["type"] == "object"
        assert set(schema.get("required", [])) <= set(schema.get("properties", {}))


@pytest.mark.parametrize(
    ("name", "tool", "required"),
    [
        ("slack", "send_message", ["channel", "text"]),
        ("slack", "channels_list", []),
        ("todoist", "create_task", ["content"]),
        ("todoist", "list_tasks", []),
    ],
)
def test_the_demo_servers_have_the_tools_everybody_knows(name: str, tool: str, required: list[str]) -> None:
    schemas = {it.name: it.definition()["inputSchema"] for it in Scenario.load(name).tools}
    schema = schemas[tool]
    assert isinstance(schema, dict)
    assert schema.get("required", []) == required


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nmae = 'x'", "there is no key 'nmae' here; the nearest is 'name'."),
        ("page_size = 'two'", "page_size: a string stands here; write a whole number."),
        ("page_size = 0", "page_size is 0; write 1 or more."),
        ("era = 'old'", "era is 'old'; write legacy, modern or both."),
        (
            "versions = ['2023-01-01']",
            "versions names '2023-01-01', which is not of era 'both'; choose from 2024-11-05,",
        ),
        (
            "tools = [{ description = 'x' }]",
            "tools[0]: the key 'name' is missing; add it, or give the definition as raw.",
        ),
        ("tools = [{ name = 'x', inputSchema = '{' }]", "tools[0].inputSchema: it is not JSON ("),
        ("tools = [{ raw = '{' }]", "tools[0]: raw is not JSON text ("),
        (
            "tools = [{ name = 'x', result = { txet = 'a' } }]",
            "tools[0].result: there is no key 'txet' here; the nearest is 'text'.",
        ),
        (
            "tools = [{ name = 'x', result = { delay = -1 } }]",
            "tools[0].result: delay is negative; write seconds, 0 or more.",
        ),
        ("tools = [{ name = 'x', result = { json = '{]' } }]", "tools[0].result: json is not JSON text ("),
        (
            "tools = [{ name = 'x', result = { error = {} } }]",
            "tools[0].result.error: the key 'code' is missing; add it.",
        ),
        ("faults = ['explode']", "faults[0]: there is no fault 'explode'; the faults are slow-start,"),
        (
            "faults = [{ kind = 'silence', code = 3 }]",
            "faults[0]: the fault 'silence' has no option 'code'; its options: none.",
        ),
        (
            "faults = [{ kind = 'crash', when = 'later' }]",
            "faults[0]: when is 'later'; write before, middle or after.",
        ),
        (
            "faults = [{ kind = 'fork', nth = 2 }]",
            "faults[0]: the fault 'fork' is not about a request; remove method, tool, nth",
        ),
        (
            "faults = [{ kind = 'silence', method = 'ping', tool = 'x' }]",
            "faults[0]: tool is set and method is 'ping'; a tool is met",
        ),
        ("faults = [{ kind = 'cursor-loop' }]", "a fault of paging needs pages; set page_size."),
        ("faults = [{ knid = 'crash' }]", "faults[0]: there is no key 'knid' here; the nearest is 'kind'."),
        ("tools = 3", "tools: a whole number stands here; write a list."),
        ("cache_scope = 'all'", "cache_scope is 'all'; write public or private."),
        ("= 3", "Invalid statement (at line 1, column 1); correct the syntax."),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_key(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'shop.toml'}: {sentence}")
    assert "\n" not in message
    assert "`" not in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="it can't be read"):
        Scenario.load(tmp_path / "none.toml")


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match=r"give a path, or one of .*slack"):
        Scenario.load("slakc")


def test_a_fault_of_http_does_not_play_over_stdio() -> None:
    told = described(None, faults=["hang"])
    assert told.over("http") is told
    with pytest.raises(ScenarioError, match="'hang' can't be played over stdio; use http or sse"):
        told.over("stdio")


def test_generated_tools_are_many_distinct_and_always_the_same() -> None:
    told = Scenario.from_mapping({"generate": {"count": 1300, "description": 200, "parameters": 10}})
    tools = told.all_tools()
    assert len({tool.name for tool in tools}) == 1300
    assert tools == told.all_tools()
    assert tools[0].name == "create_invoice"
    schema = tools[0].definition()["inputSchema"]
    assert isinstance(schema, dict)
    assert len(schema["properties"]) == 10
    assert all(len(str(tool.definition()["description"])) >= 200 for tool in tools)


def test_python_may_mix_tools_names_and_tables() -> None:
    told = described("echo", name="mine", tools=["one", {"name": "two"}, Tool.make("three")], era="modern")
    assert [tool.name for tool in told.tools] == ["one", "two", "three"]
    assert (told.name, told.era, told.title) == ("mine", "modern", "Echo")
    assert told.legacy_versions == ()
    assert told.with_era("legacy").modern_versions == ()


def test_every_public_name_is_there() -> None:
    assert {name: getattr(mcpzip_fakes, name).__name__ for name in mcpzip_fakes.__all__} == {
        name: name for name in mcpzip_fakes.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'Fale'"):
        mcpzip_fakes.Fale  # noqa: B018


def test_the_guide_names_every_fault_and_scenario_and_its_example_loads(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "fakes.md").read_text(encoding="utf-8")
    table = guide.partition("\n## Faults\n")[2]
    missing = [kind for kind in KINDS if f"`{kind}`" not in table]
    missing += [option for row in KINDS.values() for option in row.options if f"`{option}`" not in table]
    missing += [name for name in names() if f"`{name}`" not in guide]
    assert missing == []
    example = guide.partition("```toml\n")[2].partition("```")[0]
    told = load(tmp_path, example)
    assert (told.tools[0].name, told.faults[0].kind, told.record_env) == ("pay", "crash", ("SHOP_TOKEN",))
