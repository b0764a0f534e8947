"""The navigation of the site names every page, so that plain ``pytest`` finds a page that has been forgotten."""

import re
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def test_every_page_is_in_the_navigation_once() -> None:
    named = re.findall(r"[\w./-]+\.md$", (_ROOT / "conf" / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    docs = _ROOT / "docs"
    assert sorted(named) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))
