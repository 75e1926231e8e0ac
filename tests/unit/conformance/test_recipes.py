"""The recipes for CI: they are on the page as they are in the files, and what they run exists."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from mcpzip_conformance.cli import main

DOCS = Path(__file__).parents[3] / "docs"
GITHUB, GITLAB = (DOCS / "recipes" / f"conformance-{name}.yml" for name in ("github", "gitlab"))


def commands(file: Path) -> list[str]:
    data = yaml.safe_load(file.read_text("utf-8"))
    if file == GITLAB:
        script = data["conformance"]["script"]
        assert all(isinstance(line, str) for line in script)
        return list(script)
    assert data["permissions"] == {"contents": "read"}
    return [step["run"] for step in data["jobs"]["conformance"]["steps"] if "run" in step]


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=["github", "gitlab"])
def test_what_a_recipe_runs_exists(file: Path) -> None:
    installs, judges = commands(file)
    assert shlex.split(installs) == ["pip", "install", "mcpzip[conformance]"]
    program, command, *words = shlex.split(judges)
    assert program == "mcpzip-conformance"
    found = main.get_command(
        main.make_context("mcpzip-conformance", [command], resilient_parsing=True), command
    )
    assert found is not None
    given = found.make_context(command, words).params
    assert given["names"] == ("my-proxy.toml",)
    assert given["junit"] == "junit.xml"
    assert given["summary"] == ("$GITHUB_STEP_SUMMARY" if file == GITHUB else None)


def test_what_a_recipe_keeps_is_what_it_wrote() -> None:
    [*_, keeps] = yaml.safe_load(GITHUB.read_text("utf-8"))["jobs"]["conformance"]["steps"]
    artifacts = yaml.safe_load(GITLAB.read_text("utf-8"))["conformance"]["artifacts"]
    assert artifacts["reports"] == {"junit": "junit.xml"}
    kept = (*artifacts["paths"], *artifacts["reports"].values(), *keeps["with"]["path"].split())
    for file in set(kept):
        for recipe in (GITHUB, GITLAB):
            assert re.search(rf"--\w+[ =]{re.escape(file)}(\s|$)", commands(recipe)[1]), file


def test_the_page_has_them_as_they_are() -> None:
    fences = re.findall(r"^```yaml\n(.*?)^```$", (DOCS / "conformance.md").read_text("utf-8"), re.M | re.S)
    assert fences == [GITHUB.read_text("utf-8"), GITLAB.read_text("utf-8")]
