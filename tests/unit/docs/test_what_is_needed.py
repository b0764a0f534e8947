"""What the pages say that users need is what scripts/bare tries the commands with."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_page_names_the_packages_of_a_bare_machine(page: str) -> None:
    script = (ROOT / "scripts" / "bare").read_text(encoding="utf-8")
    (packages,) = re.findall(r"^packages=\((.*)\)$", script, re.MULTILINE)
    assert f"\napt-get install {packages}\n" in (ROOT / page).read_text(encoding="utf-8")
