"""When a controller says that it stands by."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.settings.trimtab_toml import read_settings
from streaming import rehearsal
from streaming.assembly import Assembly
from tests.modelled_log import settings_in


def test_who_says_that_it_stands_by_has_nothing_left_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told to end then ends at once: the folder of the rehearsal, with hundreds of files, is gone."""
    scratch, seen = tmp_path / "scratch", list[int]()
    scratch.mkdir()

    def look(*_: object) -> None:
        seen.append(len([*scratch.iterdir()]))

    monkeypatch.setattr(rehearsal, "scratch_folder", lambda: scratch)
    monkeypatch.setattr(rehearsal, "_run_query", look)
    monkeypatch.setattr(rehearsal.log, "info", look)
    rehearsal.rehearse(Mock(), Assembly(read_settings(settings_in(tmp_path))).options, Mock())
    assert seen == [1, 0]
