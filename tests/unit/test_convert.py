"""Files of older formats are rewritten by scripts/convert, so that trimtab reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.reading import Recording
from tests.convert.__main__ import main
from tests.convert.recording import convert_recording

SESSION = Path(__file__).parents[1] / "data" / "pulsar_recordings" / "changing"


def older(folder: Path, version: int) -> Path:
    """The recording of a session as that version wrote it: without the guardrails that came later."""
    for file in SESSION.rglob("*.parquet"):
        (folder / file.parent.name).mkdir(parents=True)
        (folder / file.relative_to(SESSION)).write_bytes(file.read_bytes())
    manifest: dict[str, Any] = json.loads((SESSION / "manifest.json").read_text())
    later = ("unproven_bundles", "confirm_intervals", "unconfirmed_brokers", "brokers_balance_unknown")
    for key in later:
        manifest["settings"]["guardrails"].pop(key)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": version}))
    return folder


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_recording_is_refused_and_once_converted_has_the_settings_of_its_decisions(
    version: int, tmp_path: Path
) -> None:
    old = older(tmp_path / "old", version)
    with pytest.raises(RecordingError, match="scripts/convert"):
        Recording(old)
    convert_recording(old, tmp_path / "new")
    assert Recording(tmp_path / "new").manifest == Recording(SESSION).manifest


def test_what_is_no_older_recording_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a recording of the formats 1, 2, 3"):
        convert_recording(SESSION, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_converted_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["convert", "recording", str(tmp_path / "none"), str(tmp_path / "new")])
    with pytest.raises(SystemExit, match=r"scripts/convert: .*No such file or directory"):
        main()
