"""What registries, Docker, desktop clients and GitHub read agrees with pyproject.toml and the programs."""

import fnmatch
import json
import re
import runpy
import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml
from mcpzip_conformance.cli import main as conformance

import mcpzip
from mcpzip.proxy import metatools

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "manifests.py"))
BUNDLE = runpy.run_path(str(ROOT / "tools" / "bundle.py"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def test_the_manifests_are_up_to_date() -> None:
    for path, text in TOOL["files"]():
        assert path.read_text("utf-8") == text, f"{path.name}: run python tools/manifests.py"


def test_every_version_is_that_of_the_project() -> None:
    assert mcpzip.__version__ == VERSION
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    assert [server["version"], *(package["version"] for package in server["packages"])] == [VERSION] * 2
    labels = re.findall(r'image\.version="(.*?)"', DOCKERFILE)
    assert labels == [VERSION] * DOCKERFILE.count("\nENTRYPOINT ")
    assert BUNDLE["manifest"](PROJECT)["version"] == VERSION


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The files that the tool reads and writes, in a folder of their own."""
    for name in ("pyproject.toml", "README.md", "Dockerfile", "server.json"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_another_version_and_name_go_everywhere(copied: Path) -> None:
    project = copied / "pyproject.toml"
    text = project.read_text("utf-8").replace(f'version = "{VERSION}"', 'version = "9.8.7"')
    project.write_text(
        text.replace("[project]\n", '[project]\nurls = {Repository = "https://example.org/r"}\n')
    )
    assert len(TOOL["problems"](copied)) == 3
    assert TOOL["main"](["--name", "io.github.somebody/mcpzip"], copied) is None
    assert TOOL["main"](["--check"], copied) is None
    server = json.loads((copied / "server.json").read_text("utf-8"))
    jsonschema.validate(server, SCHEMA)
    assert (server["name"], server["version"]) == ("io.github.somebody/mcpzip", "9.8.7")
    assert server["repository"]["url"] == "https://example.org/r"
    assert (copied / "README.md").read_text("utf-8").count("mcp-name: ") == 1
    assert "mcp-name: io.github.somebody/mcpzip -->" in (copied / "README.md").read_text("utf-8")
    image = (copied / "Dockerfile").read_text("utf-8")
    assert 'server.name="io.github.somebody/mcpzip"' in image
    assert image.count('image.version="9.8.7"') == DOCKERFILE.count("image.version=")


def test_nothing_is_published_in_the_namespace_of_nobody(copied: Path) -> None:
    assert "--name io.github.ACCOUNT/mcpzip" in TOOL["main"](["--check"], copied)
    assert "write NAMESPACE/NAME" in TOOL["main"](["--name", "mcpzip"], copied)


# ---- server.json

_INPUT = {
    "description": {"type": "string"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "choices": {"type": "array", "items": {"type": "string"}},
    "default": {"type": "string"},
    "value": {"type": "string"},
}
SCHEMA = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": TOOL["SCHEMA"]},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": f"^{TOOL['NAME'].pattern}$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "repository": {
            "type": "object",
            "required": ["url", "source"],
            "additionalProperties": False,
            "properties": {"url": {"type": "string", "pattern": "^https://"}, "source": {"type": "string"}},
        },
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "transport", "version", "runtimeHint"],
                "additionalProperties": False,
                "properties": {
                    "registryType": {"const": "pypi"},
                    "registryBaseUrl": {"const": "https://pypi.org"},
                    "identifier": {"const": PROJECT["name"]},
                    "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
                    "runtimeHint": {"const": "uvx"},
                    "transport": {"const": {"type": "stdio"}},
                    "packageArguments": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "value"],
                            "additionalProperties": False,
                            "properties": {"type": {"const": "positional"}, **_INPUT},
                        },
                    },
                    "environmentVariables": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name", "description"],
                            "additionalProperties": False,
                            "properties": {"name": {"type": "string"}, **_INPUT},
                        },
                    },
                },
            },
        },
    },
}
"""What the published schema (`TOOL["SCHEMA"]`) and the official registry require of the members that we use,
and no other members.
"""


def test_server_json_is_as_its_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads((ROOT / "server.json").read_text("utf-8")), SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "mcpzip"),
        (("description",), "x" * 101),
        (("version",), ">=1"),
        (("packages", 0, "version"), "latest"),
        (("packages", 0, "registryBaseUrl"), "https://pypi.example"),
        (("packages", 0, "packageArguments", 0), {"type": "positional"}),
        (("packages", 0, "environmentVariables", 0, "format"), "file"),
        (("status",), "active"),
    ],
)
def test_a_manifest_that_the_registry_refuses_is_refused(path: tuple[str | int, ...], value: object) -> None:
    manifest = json.loads((ROOT / "server.json").read_text("utf-8"))
    place = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(manifest, SCHEMA)


def test_what_a_client_runs_is_a_command_of_the_package() -> None:
    """uvx runs the command that is named as the package; its variables are those that mcpzip reads."""
    [package] = json.loads((ROOT / "server.json").read_text("utf-8"))["packages"]
    assert PROJECT["scripts"][package["identifier"]] == "mcpzip.cli.main:main"
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]
    names = {variable["name"] for variable in package["environmentVariables"]}
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcpzip").rglob("*.py"))
    assert {name for name in names if f'"{name}"' not in source} == set()


# ---- Dockerfile


def test_every_image_is_pinned_by_its_digest_and_runs_as_a_user() -> None:
    stages = re.split(r"(?m)^(?=FROM )", DOCKERFILE)[1:]
    bases = {name: base for base, name in re.findall(r"(?m)^FROM (\S+) AS (\S+)$", DOCKERFILE)}
    assert len(bases) == len(stages)
    for base in bases.values():
        assert base in bases or re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)
    runtime = next(stage for stage in stages if " AS runtime" in stage)
    assert re.findall(r"(?m)^USER (.*)$", runtime) == ["10001:10001"]
    assert [stage.partition("\n")[0] for stage in stages if "\nENTRYPOINT " in stage] == [
        "FROM runtime AS conformance",
        "FROM runtime AS mcpzip",  # the last one is built if none is named
    ]
    assert "USER" not in stages[-1]


def test_the_image_has_what_it_is_built_from() -> None:
    """Of the build context, .dockerignore leaves what COPY names, and no other file of the folder."""
    rules = [
        line for line in (ROOT / ".dockerignore").read_text("utf-8").split("\n") if line and line[0] != "#"
    ]
    assert rules[0] == "*"
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        word for line in re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", DOCKERFILE) for word in line.split()
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    needed = {Path(path).parts[0] for path in packages["wheel"]["packages"]}
    assert needed | {PROJECT["readme"], *PROJECT["license-files"]} <= kept
    assert not any(fnmatch.fnmatch(name, rule) for name in kept for rule in rules[1:])


def test_the_entry_points_of_the_images_are_commands() -> None:
    starts = [json.loads(line) for line in re.findall(r"(?m)^ENTRYPOINT (.*)$", DOCKERFILE)]
    assert [start[:3] for start in starts] == [["tini", "-s", "--"]] * len(starts)
    assert {start[3] for start in starts} == {"mcpzip", "mcpzip-conformance"} <= set(PROJECT["scripts"])


# ---- The bundle


def test_the_bundle_is_the_same_each_time_and_has_what_its_manifest_names(tmp_path: Path) -> None:
    wheel = tmp_path / f"mcpzip-{VERSION}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    first, second = (BUNDLE["build"](wheel, tmp_path / name) for name in ("one", "two"))
    assert first.name == f"mcpzip-{VERSION}.mcpb"
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    assert manifest["manifest_version"] == "0.4"
    assert manifest["server"]["type"] == "uv"
    assert manifest["server"]["entry_point"] in members
    assert {tool["name"] for tool in manifest["tools"]} == {
        metatools.SEARCH, metatools.DESCRIBE, metatools.EXECUTE
    }  # fmt: skip
    assert {f"${{user_config.{key}}}" for key in manifest["user_config"]} == set(
        manifest["server"]["mcp_config"]["env"].values()
    )
    project = tomllib.loads(members["pyproject.toml"].decode())
    assert members[project["tool"]["uv"]["sources"]["mcpzip"]["path"]] == wheel.read_bytes()
    assert project["project"]["dependencies"] == [f"mcpzip=={VERSION}"]
    assert project["project"]["requires-python"] == PROJECT["requires-python"]


@pytest.mark.parametrize("name", ["mcpzip-0.0.1-py3-none-any.whl", "other-9.whl", "mcpzip.tar.gz"])
def test_another_wheel_makes_no_bundle(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(b"")
    said = BUNDLE["main"]([str(tmp_path / name), "--folder", str(tmp_path)])
    assert said == f"{name} is no wheel of mcpzip {VERSION}: make one with pip wheel --no-deps ."
    assert list(tmp_path.glob("*.mcpb")) == []


# ---- action.yml


def test_the_action_passes_options_that_the_runner_has() -> None:
    [install, play] = ACTION["runs"]["steps"]
    run = conformance.commands["run"]
    words = re.findall(r"(?<![\w-])(--[a-z-]+)", play["run"])
    with click.Context(run) as context:
        known = {name for parameter in run.get_params(context) for name in parameter.opts}
    assert set(words) <= known
    assert {"--level", "--group", "--check", "--expect", "--json", "--markdown"} <= set(words)
    assert "[conformance]" in install["run"]
    assert "conformance" in PROJECT["optional-dependencies"]


def test_no_input_of_the_action_is_read_as_code() -> None:
    """Inputs reach the steps by the environment only, all of them, and none that doesn't exist."""
    used = set()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        for value in step["env"].values():
            used |= set(re.findall(r"inputs\.([\w-]+)", value))
    assert used == set(ACTION["inputs"])
    assert ACTION["outputs"]["reports"]["value"] == "${{ inputs.reports }}"
