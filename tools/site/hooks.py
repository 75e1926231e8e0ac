"""What `mkdocs` does beside building the pages of docs/.

1. CHANGELOG.md becomes a page.
2. Links to files outside docs/ become the names of the files, because the site has only docs/.
3. The one script that the theme takes from another host comes from the folder of this module, if
   `npm ci --prefix tools/site` has put it there; else it is left out. Only a search in pages that are opened
   as files needs it.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "node_modules" / "iframe-worker" / "shim" / "index.js"
_PLACE = "assets/javascripts/iframe-worker.js"
_REMOTE = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+([^)#]*)(?:#[^)]*)?\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Adds CHANGELOG.md, whose links begin at the root of the repository."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    files.append(File.generated(config, "changelog.md", content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Replaces the links that lead out of docs/."""
    depth = page.file.src_uri.count("/")

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if found[0].count("../") <= depth:  # a page of the site
            return found[0]
        if target == "README.md":
            return f"[{text}]({'../' * depth}index.md)"
        return text if text.strip("`").endswith(target.rsplit("/", 1)[-1]) else f"{text} (`{target}`)"

    return _OUTSIDE.sub(replaced, markdown)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Replaces the script from another host."""
    place = "../" * page.file.dest_uri.count("/") + _PLACE
    return output.replace(_REMOTE, f'<script src="{place}"></script>' if SCRIPT.exists() else "")


def on_post_build(*, config: Any) -> None:
    """Copies the script."""
    if SCRIPT.exists():
        shutil.copyfile(SCRIPT, Path(config.site_dir) / _PLACE)
    missing = Path(config.site_dir) / "404.html"  # made without a page, so that `on_post_page` is not called
    missing.write_text(missing.read_text("utf-8").replace(_REMOTE, ""), "utf-8")
