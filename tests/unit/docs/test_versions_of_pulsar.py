"""docs/strategies.md prints the table of what differs between versions of Pulsar."""

from collections import defaultdict
from pathlib import Path

from controller.model.pulsar_version import DEFAULTS, KNOWN_SINCE

_PAGE = Path(__file__).parents[3] / "docs" / "strategies.md"


def default_rows() -> list[str]:
    rows = []
    for option, (oldest, *later) in sorted(DEFAULTS.items()):
        steps = [f"{each.value} from {_line(str(each.since))} on" for each in later]
        rows.append(f"| `{option}` | {'; '.join([oldest.value, *steps])} |")
    return rows


def known_rows() -> list[str]:
    by_version = defaultdict[str, list[str]](list)
    for option, since in sorted(KNOWN_SINCE.items()):
        by_version[", ".join(_line(str(each)) for each in since)].append(f"`{option}`")
    return [f"| {version} | {', '.join(options)} |" for version, options in by_version.items()]


def _line(version: str) -> str:
    """Of 5.0.0, 5.0."""
    return version.removesuffix(".0") if version.count(".") == 2 else version


def test_each_row_of_the_table_is_on_the_page() -> None:
    lines = _PAGE.read_text().splitlines()
    assert [row for row in [*default_rows(), *known_rows()] if row not in lines] == []
