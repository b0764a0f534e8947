"""Files of older formats are rewritten by scripts/convert, so that trimtab reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.recordings.incident_file import IncidentAbout, unpacked_incident, write_incident
from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.reading import Recording
from controller.offline.replay import LogReplay
from tests.convert.recording import convert_incident, convert_recording

DATA = Path(__file__).parents[1] / "data"
SESSION = DATA / "pulsar_recordings" / "skewed"
OLD = DATA / "recordings_of_format_4" / "skewed"


def older(folder: Path, version: int) -> Path:
    """The recording of a session as that version wrote it: without the guardrails that came later."""
    for file in OLD.rglob("*.parquet"):
        (folder / file.parent.name).mkdir(parents=True)
        (folder / file.relative_to(OLD)).write_bytes(file.read_bytes())
    manifest: dict[str, Any] = json.loads((OLD / "manifest.json").read_text())
    later = ("unproven_bundles", "confirm_intervals", "unconfirmed_brokers", "brokers_balance_unknown")
    for key in later if version < 4 else ():
        manifest["settings"]["guardrails"].pop(key)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": version}))
    return folder


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_older_recording_is_refused_and_once_converted_has_the_settings_of_its_decisions(
    version: int, tmp_path: Path
) -> None:
    old = older(tmp_path / "old", version)
    with pytest.raises(RecordingError, match="scripts/convert"):
        Recording(old)
    convert_recording(old, tmp_path / "new")
    new, expected = Recording(tmp_path / "new"), Recording(SESSION)
    assert new.manifest == expected.manifest
    for topic in expected.manifest.topics:
        assert [*new.read(topic, new.extents(topic))] == [*expected.read(topic, expected.extents(topic))]
    assert LogReplay(new, new.manifest.settings, new.manifest.settings.policy("standalone"), ()).run().comparison.equal


def test_an_incident_with_an_older_recording_is_converted(tmp_path: Path) -> None:
    about = IncidentAbout(cluster="c", around=0, anonymised=False, versions={})
    write_incident(tmp_path / "old.tar", about, OLD)
    convert_incident(tmp_path / "old.tar", tmp_path / "new.tar")
    with unpacked_incident(tmp_path / "new.tar") as incident:
        assert Recording(incident.recording).manifest == Recording(SESSION).manifest


def test_what_is_no_older_recording_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a recording of the formats 1, 2, 3, 4"):
        convert_recording(SESSION, tmp_path / "new")
    assert not (tmp_path / "new").exists()
