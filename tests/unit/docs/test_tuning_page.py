"""docs/tuning.md has every complaint that trimtab has to answer, and names scenarios and options that there are."""

import re
from typing import Final

from controller.offline.scenarios.shipped import shipped
from controller.settings.known_options import options_table
from tests.pages import DOCS, ROOT

_PAGE: Final = (DOCS / "tuning.md").read_text(encoding="utf-8")
#: Issues of apache/pulsar, one of each complaint at least.
_COMPLAINTS: Final = (
    17860, 16059, 21722, 17456, 12160, 22946, 8492, 12230, 21299, 21174, 15904, 23304, 26031, 13915, 21168, 1149, 7475,
    21409, 16476, 22254, 11937, 3419, 21011, 13276, 24478, 24884,
)  # fmt: skip


def test_every_complaint_has_its_cure() -> None:
    assert [number for number in _COMPLAINTS if not re.search(rf"\b{number}\b", _PAGE)] == []


def test_each_complaint_is_shown_by_a_scenario_about_it_or_by_a_test_that_there_is() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\d, ]+) \| [^|\n]+ \| ([^|\n]+) \|$", _PAGE, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 27))
    scenarios, unproved, unrelated = dict(shipped()), [], []
    for (number, issues, shown), complaint in zip(rows, _COMPLAINTS, strict=True):
        assert str(complaint) in issues, number
        named = re.findall(r"`([a-z0-9-]+)`", shown)
        tests = re.findall(r"tests/[a-z0-9_/]+\.py", shown)
        unproved += [number] if not named and not tests else []
        unproved += [test for test in tests if not (ROOT / test).is_file()]
        about = [name for name in named if any(each in scenarios[name].source for each in issues.split(", "))]
        unrelated += [number] if named and not about else []
    assert (unproved, unrelated) == ([], [])


def test_every_scenario_in_the_last_column_is_one_that_trimtab_has() -> None:
    named = {name for cell in re.findall(r"\| ([^|\n]*) \|\n", _PAGE) for name in re.findall(r"`([a-z0-9-]+)`", cell)}
    assert len(named) > 15
    assert named <= {name for name, _ in shipped()}


def test_every_option_is_one_that_trimtab_reads_or_that_the_page_says_only_brokers_read() -> None:
    known = {row.key for row in options_table()}
    sections = {key.rpartition(".")[0].partition(".")[0] for key in known if "." in key}
    named = {name.partition("=")[0].strip() for name in re.findall(r"`([^`\n]+)`", _PAGE)}
    options = {name for name in named if re.fullmatch(r"(?:loadBalancer|loadManager|minUnload|trimtab|lower)\w+", name)}
    options |= {name for name in named if name.partition(".")[0] in sections and re.fullmatch(r"[a-z_.]+", name)}
    assert len(options) > 20
    assert {name for name in options - known if not name.startswith("loadBalancerReportUpdate")} == set()
