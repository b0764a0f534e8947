"""The pages of docs as a site: every link and every anchor leads somewhere, and no page is left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "conf/mkdocs.yml", "-d", str(tmp_path)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=_ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((_ROOT / "docs").glob("*.md")))
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(https?:)?//')
    assert [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))] == []
