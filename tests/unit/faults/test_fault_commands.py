"""`scripts/faults`: what it is asked for and cannot do is said before anything starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.faults import report
from tests.faults.__main__ import app


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "'nosuch' is none of"),
        (["--election", "log", "zookeeper-away"], "'zookeeper-away' is none of"),
        (["--election", "log", "leader-log-cut"], "'leader-log-cut' is none of"),
        (["--pulsar", "5.0", "clock-ahead"], "'clock-ahead' is none of"),
        (["--log", "pulsar", "journal-full"], "'journal-full' is none of"),
        (["--runs", "0", "kill"], "--runs"),
        (["--page", "/nowhere", "kill"], "--page"),
        (["--stale", "nosuch"], "'nosuch' has no row"),
    ],
)
def test_what_cannot_be_done_is_refused(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2
    assert says in found.output


def test_stale_looks_at_the_rows_that_are_named_alone(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text("\n".join([*report.HEADER, "| kill | 0 |", "| kill, log in Pulsar | 0 |", "| hang | 0 |", ""]))
    found = CliRunner().invoke(app, ["--stale", "--page", str(page), "--only", "kill"])
    assert found.exit_code == 1
    assert [line.partition(":")[0] for line in found.output.splitlines()] == ["kill", "kill, log in Pulsar"]
