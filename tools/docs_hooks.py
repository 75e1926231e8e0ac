"""What `mkdocs` does beside building the pages of docs/.

CHANGELOG.md becomes a page. Links to files outside docs/ become the names of the files, because the site has
only docs/.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
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
