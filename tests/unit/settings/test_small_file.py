"""Files that are given in place of settings: one without end, one that is too long, a folder."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
import typer
from typer.testing import CliRunner

from controller.cli.apply import apply
from controller.cli.record import key_of
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.namespaces import read_boundaries
from controller.offline.recording import lines_of
from controller.settings.broker_conf import read_broker_conf
from controller.settings.capacity import read_capacity_overrides
from controller.settings.rebalance_group import read_rebalance_group
from controller.settings.redaction import read_secret
from controller.settings.scenario import read_scenario
from controller.settings.small_file import LARGEST_FILE, MOST_TABLES, read_small_file
from controller.settings.trimtab_toml import read_settings


def _secret(path: Path) -> str:
    return read_secret(str(path), "auth.token_file")


def _key(path: Path) -> bytes | None:
    return key_of(True, path)


def _plan(path: Path) -> None:
    command = typer.Typer()
    command.command()(apply)
    CliRunner().invoke(command, [str(path), "--hash", "0" * 64], catch_exceptions=False)


def _load(path: Path) -> object:
    return next(lines_of(path))


_SMALL: list[Callable[[Path], object]] = [
    read_broker_conf, read_boundaries, read_capacity_overrides, read_rebalance_group, read_scenario, read_settings,
    _secret,
]  # fmt: skip
_READERS = [*_SMALL, _key, _plan, _load]


@pytest.mark.parametrize("reader", _SMALL)
def test_a_file_without_end_is_refused_by_every_reader_of_a_small_file(reader: Callable[[Path], object]) -> None:
    with pytest.raises(TrimtabError, match="longer than 8 MiB"):
        reader(Path("/dev/zero"))


@pytest.mark.parametrize("reader", _READERS)
def test_a_folder_is_refused_by_every_reader(reader: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises((SettingsError, TrimtabError), match="directory"):
        reader(tmp_path)


@pytest.fixture
def named_pipe(tmp_path: Path) -> Iterator[Path]:
    """One that ends for whoever waits for it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=lambda: path.open("wb").close())
    writer.start()
    yield path
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()  # it may open the pipe only now
    os.close(reading)


@pytest.mark.parametrize("reader", _READERS)
def test_a_named_pipe_is_refused_by_every_reader_and_not_waited_for(
    reader: Callable[[Path], object], tmp_path: Path, named_pipe: Path
) -> None:
    (tmp_path / "link").symlink_to(named_pipe)
    with pytest.raises(TrimtabError, match="it is a named pipe; expected a regular file"):
        reader(tmp_path / "link")


def test_a_pipe_that_this_process_has_inherited_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"as <(command) gives it")
    os.close(writing)
    assert read_small_file(Path(f"/dev/fd/{reading}")) == b"as <(command) gives it"
    os.close(reading)


def test_a_file_is_read_up_to_the_longest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST_FILE)
    assert len(read_small_file(file)) == LARGEST_FILE
    with file.open("ab") as sparse:
        sparse.write(b"x")
    with pytest.raises(OSError, match="longer than"):
        read_small_file(file)


_OF_TABLES: list[Callable[[Path], object]] = [
    read_capacity_overrides, read_rebalance_group, read_scenario, read_settings,
]  # fmt: skip


@pytest.mark.parametrize("reader", _OF_TABLES)
def test_a_file_of_very_many_tables_is_refused_before_it_is_parsed(
    reader: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "many.toml"
    path.write_bytes(b"members=[" + b"{}," * MOST_TABLES + b"]\n")
    with pytest.raises(SettingsError, match=r"it has 100,001 tables and arrays, allowed: 100,000"):
        reader(path)


@pytest.mark.parametrize(("reader", "table"), [(read_scenario, "namespaces"), (read_rebalance_group, "members")])
def test_of_very_many_errors_of_a_file_a_hundred_are_told_and_how_many_more_there_are(
    reader: Callable[[Path], object], table: str, tmp_path: Path
) -> None:
    path = tmp_path / "many.toml"
    path.write_text(f"{table}=[{'{},' * 150}]\n", encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        reader(path)
    *told, more = str(refused.value).splitlines()
    assert len(told) == 100
    assert f"{path}: {table}.30.name is missing" in told
    assert re.fullmatch(r".*/many\.toml: \d+ more", more)
