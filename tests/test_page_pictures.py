"""The pictures of the page that the documentation shows: each exists, is small, and is made by the script."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures" / "page"
LARGEST = 150_000  # bytes


def test_each_picture_that_is_shown_is_made_by_the_script_and_no_other() -> None:
    made = {f"{one.name}.png" for one in runpy.run_path(str(ROOT / "tools" / "page_pictures.py"))["PICTURES"]}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"pictures/page/([\w-]+\.png)", page.read_text("utf-8"))
    }
    assert shown == made
    assert {path.name for path in FOLDER.iterdir()} == made
    assert "pictures/page/" in pages[0].read_text("utf-8")


def test_they_are_small_pictures() -> None:
    for path in FOLDER.iterdir():
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG\r\n"), path
        assert len(data) < LARGEST, path
