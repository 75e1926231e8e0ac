"""Git and the files that mcpzip keeps beside a config."""

import os
import subprocess

import pytest
from helpers.state_files import KINDS, File


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "home" / "config.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"shop": {"command": "shop"}}}')
    return str(path)


def test_git_sees_nothing_of_it(config):
    home = os.path.dirname(config)
    for kind in KINDS:
        File(config, kind).write()
    try:
        subprocess.run(["git", "init", "-q", home], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no git")
    done = subprocess.run(
        ["git", "-C", home, "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["??", "config.json"]
