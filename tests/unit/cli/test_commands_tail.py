"""``trimtab commands tail`` on a log in a folder."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from controller.cli import commands
from controller.cli.commands import app
from controller.log.commands import IssuedEvent
from controller.model.decision import Command
from controller.model.errors import SettingsError
from controller.wire.commands import command_event, epoch_event
from controller.wire.readable import utc
from tests.folder_settings import write_settings
from tests.folders import issue as issue_events
from tests.folders import journal_in, lines_in
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T

NEXT = T + PERIOD


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return write_settings(tmp_path)


def issue(folder: Path, interval: int, *commands: Command, epoch: int = 7) -> None:
    journal = journal_in(folder / "log", cluster=CLUSTER)
    journal.open()
    journal.append(entry(interval, *commands), epoch=epoch, issued_at_ms=interval + 1_500, before_commit=lambda: None)


def spoil(folder: Path, *lines: bytes) -> Path:
    issue_events(folder / "log", lines)
    return max((folder / "log" / "commands").iterdir())


def tail(conf: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["tail", "--conf", str(conf), *options])


def printed(conf: Path) -> list[str]:
    """The lines, with runs of spaces made one."""
    result = tail(conf, "--no-follow")
    assert result.exit_code == 0
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def when_waiting(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None]) -> None:
    """Do *steps*, one each time the command waits for more; then comes Ctrl-C."""
    left = list(steps)

    def wait() -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr(commands, "wait_for_more", wait)


def test_an_unload_is_shown_with_interval_way_mode_epoch_and_reason(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, UNLOAD)
    assert printed(conf)[2] == (
        f"2025-01-01T00:00:00Z unload {LEFT} broker-1:8080 -> broker-2:8080 active 7"
        " Overloaded (usage 90 % against 60 %)"
    )


def test_a_split_is_shown_with_algorithm_and_boundaries(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, SPLIT)
    assert printed(conf)[2] == (
        f"2025-01-01T00:00:00Z split {RIGHT} by range_equally_divide 0xc0000000, then unload active 7"
        " Topics (usage 90 % against 60 %): 1200 topics"
    )


def test_an_unload_without_a_destination_says_who_chooses(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, replace(UNLOAD, destination=""))
    assert "broker-1:8080 -> chosen by the brokers" in printed(conf)[2]


def test_an_epoch_is_a_line_of_its_own_at_the_time_it_was_written(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, UNLOAD)
    assert printed(conf)[1] == (
        "2025-01-01T00:00:01Z epoch 7 of demo starts: executors refuse commands of lower epochs from here on"
    )


def test_the_first_line_names_the_columns_and_the_rest_stands_below_them(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, UNLOAD, SPLIT)
    lines = tail(conf, "--no-follow").stdout.splitlines()
    assert lines[0].split() == ["interval", "action", "bundle", "move", "or", "cut", "mode", "epoch", "reason"]
    assert lines[0].index("bundle") == lines[2].index(LEFT) == lines[3].index(RIGHT)
    assert lines[0].index("mode") == lines[2].index("active") == lines[3].index("active")


class Partitions:
    """A log whose partitions are read one after the other, each with an epoch of its own at its beginning."""

    def __init__(self, *partitions: list[bytes]) -> None:
        self._partitions = partitions

    def commands(self) -> "Partitions":
        return self

    def read(self) -> Iterator[IssuedEvent]:
        for partition, values in enumerate(self._partitions):
            for offset, value in enumerate(values):
                yield IssuedEvent(f"partition {partition}, offset {offset}", partition, value)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_epoch_is_shown_once_and_events_in_order_of_time_whatever_the_partitions(
    options: list[str], conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, four = epoch_event(CLUSTER, 3, T), epoch_event(CLUSTER, 4, T + 20)
    late, early = (command_event(each, 3, T + ms) for each, ms in ((SPLIT, 10), (UNLOAD, 5)))
    log = Partitions([three, late, b"nothing", four], [three, early, four])
    monkeypatch.setattr(commands, "log_system", lambda _: log)
    told = tail(conf, "--no-follow", *options)
    marks: tuple[str, ...] = ("epoch 3", LEFT, RIGHT, "undecodable", "epoch 4")
    if options:
        marks = ('"epoch/3"', '"trimtab.unload"', '"trimtab.split"', '"epoch/4"')
        assert "partition 0, offset 2" in told.stderr
    assert [told.stdout.count(mark) for mark in marks] == [1] * len(marks)
    assert sorted(marks, key=told.stdout.index) == list(marks)


@pytest.mark.parametrize(
    ("options", "marks"),
    [
        (["--limit", "2"], [RIGHT, "epoch 4"]),
        (["--since", utc(T + 10_000)], [RIGHT, "epoch 4"]),
        (["--since", utc(T + 5_000), "--limit", "1"], ["epoch 4"]),
    ],
)
def test_a_time_and_a_number_choose_among_what_the_log_holds(
    options: list[str], marks: list[str], conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, four = epoch_event(CLUSTER, 3, T), epoch_event(CLUSTER, 4, T + 20_000)
    late, early = (command_event(each, 3, T + ms) for each, ms in ((SPLIT, 10_000), (UNLOAD, 5_000)))
    monkeypatch.setattr(commands, "log_system", lambda _: Partitions([three, late, four], [three, early, four]))
    printed = tail(conf, "--no-follow", *options).stdout
    assert [mark for mark in ("epoch 3", LEFT, RIGHT, "epoch 4") if mark in printed] == marks


def test_a_time_that_is_none_is_refused_by_its_option(conf: Path) -> None:
    result = tail(conf, "--since", "yesterday")
    assert (result.exit_code, "--since" in result.output) == (2, True)


def test_without_following_it_ends_at_the_present_end(conf: Path) -> None:
    assert len(printed(conf)) == 1


def test_json_prints_the_events_as_they_lie_in_the_log(tmp_path: Path, conf: Path) -> None:
    issue(tmp_path, T, UNLOAD, SPLIT)
    issue(tmp_path, NEXT)
    result = tail(conf, "--no-follow", "--json")
    assert result.exit_code == 0
    assert result.stdout_bytes.splitlines() == lines_in(tmp_path / "log" / "commands")[:3]
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == [
        "trimtab.epoch",
        "trimtab.unload",
        "trimtab.split",
    ]


def test_no_event_steers_the_terminal_that_json_is_printed_to(tmp_path: Path, conf: Path) -> None:
    steering = "\x9b2J\x7f\u2028"  # CSI, as some terminals take it, in two bytes
    issue(tmp_path, T, replace(UNLOAD, why=replace(UNLOAD.why, detail=steering)))
    result = tail(conf, "--no-follow", "--json")
    assert not set(steering) - set("2J") & set(result.stdout)
    assert json.loads(result.stdout.splitlines()[1])["data"]["explanation"]["detail"] == steering


def test_what_cannot_be_read_is_shown_with_its_place_and_the_rest_goes_on(tmp_path: Path, conf: Path) -> None:
    path = spoil(tmp_path, b'{"specversion": "1.0"}', b"\xff[bold]")
    issue(tmp_path, NEXT + PERIOD, UNLOAD)
    lines = printed(conf)
    assert lines[1] == f"undecodable, {path}, line 1: missing_field: type: Field required"
    assert lines[2].startswith(f"undecodable, {path}, line 2: not_json: ")
    assert LEFT in lines[4]


def test_with_json_what_cannot_be_read_is_told_on_standard_error_alone(tmp_path: Path, conf: Path) -> None:
    path = spoil(tmp_path, b"no json")
    issue(tmp_path, NEXT + PERIOD, UNLOAD)
    result = tail(conf, "--no-follow", "--json")
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["trimtab.epoch", "trimtab.unload"]
    assert result.stderr.startswith(f"undecodable, {path}, line 1: not_json: ")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_following_prints_what_comes_until_ctrl_c(
    options: list[str], tmp_path: Path, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue(tmp_path, T, UNLOAD)
    when_waiting(monkeypatch, lambda: issue(tmp_path, NEXT, SPLIT), lambda: None)
    result = tail(conf, *options)
    assert result.exit_code == 0
    assert [result.stdout.count(bundle) > 0 for bundle in (LEFT, RIGHT)] == [True, True]
    assert result.stdout.index(LEFT) < result.stdout.index(RIGHT)
    assert len(result.stdout.splitlines()) == (3 if options else 4), "each event and the epoch once"


def test_a_log_that_nobody_has_written_yet_is_waited_for(
    tmp_path: Path, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_waiting(monkeypatch, lambda: issue(tmp_path, T, UNLOAD))
    assert LEFT in tail(conf).stdout


def test_settings_that_cannot_be_read_are_a_settings_error(tmp_path: Path) -> None:
    result = tail(tmp_path / "none.toml", "--no-follow")
    assert isinstance(result.exception, SettingsError)
    assert result.stdout == ""


def test_a_log_without_commands_says_so_and_what_happens_next(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tail(conf, "--no-follow", "--json").stderr == "trimtab: no command has been issued yet\n"
    when_waiting(monkeypatch)
    waiting = "trimtab: no command has been issued yet; waiting for new ones until Ctrl-C\n"
    assert tail(conf).stderr == waiting


def test_commands_of_another_cluster_in_the_topic_are_left_out_and_hide_no_epoch(conf: Path) -> None:
    theirs = [epoch_event("other", 7, T + 1), command_event(replace(UNLOAD, cluster="other"), 7, T + 1)]
    ours = [epoch_event(CLUSTER, 7, T + 2), command_event(SPLIT, 7, T + 2)]
    spoil(conf.parent, *theirs, *ours)
    _, epoch, command = printed(conf)
    assert f"epoch 7 of {CLUSTER} starts" in epoch
    assert "split" in command
    assert tail(conf, "--no-follow", "--json").stdout.splitlines() == [value.decode() for value in ours]


def test_where_all_commands_are_other_clusters_it_says_so(conf: Path) -> None:
    spoil(conf.parent, epoch_event("other", 7, T + 1))
    result = tail(conf, "--no-follow")
    assert "no command has been issued yet for cluster demo, only for others" in " ".join(result.output.split())
