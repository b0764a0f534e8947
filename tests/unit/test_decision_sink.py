"""The sink, with Spark's batches played."""

import errno
import logging
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.adapters.folder import read_journal
from tests.batches import batch, sink, snapshots
from tests.logs import Shape, located, log

CLOSED = snapshots([*located(log(Shape(calm=True)))])


def test_verdicts_that_cannot_be_kept_are_said_once_and_decisions_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = Mock()
    full.write.side_effect = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with caplog.at_level(logging.WARNING):
        sink(tmp_path, verdicts=full)(batch(CLOSED), 0)
    assert full.write.call_count == len(CLOSED)
    assert [entry.interval for entry in read_journal(tmp_path)] == [each.interval for each in CLOSED]
    [told] = [record.getMessage() for record in caplog.records]
    assert "verdicts are not kept, decisions go on" in told
    assert "No space left" in told
