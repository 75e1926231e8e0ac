"""The table of word vectors and the adapter that ship are those that `tools/semantic` says it made."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ADAPTER = "mcpzip/search/remote/minilm_adapter.bin"
NEEDED = ("tools/semantic", "mcpzip/search/semantic/words.bin", ADAPTER)


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.semantic.check"], cwd=root, capture_output=True, text=True, check=False
    )


def test_table_requests_pins_and_settings_belong_together() -> None:
    done = checked(ROOT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_a_table_of_other_inputs_is_told(tmp_path: Path) -> None:
    for name in NEEDED:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True)
            shutil.copyfile(source, target)
    assert checked(tmp_path).returncode == 0
    requests = min((tmp_path / "tools/semantic/requests").glob("*.tsv"))
    with requests.open("a", encoding="utf-8") as file:
        file.write("# another\none_more\tOne more tool.\tone more, please\n")
    table = tmp_path / "mcpzip/search/semantic/words.bin"
    table.write_bytes(table.read_bytes()[:-1] + b"\0")
    done = checked(tmp_path)
    assert done.returncode == 1
    for name in (requests.name, "words.bin", "minilm_adapter.bin"):
        assert name in done.stdout + done.stderr


def test_the_index_of_its_words_is_the_one_that_is_made_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "tools/row_index.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
