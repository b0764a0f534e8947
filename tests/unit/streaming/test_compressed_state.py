"""State in the store is compressed, and what was stored before it was is still read."""

import pytest

from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import ShardState
from controller.model.errors import StateError
from streaming.compressed import compressed, decompressed

STATE = state_blob.dump(ShardState(shard=1, shards=3))


@pytest.mark.parametrize("blob", [b"", b"x", STATE, STATE * 1000, b"zstd"])
def test_a_blob_comes_back(blob: bytes) -> None:
    assert decompressed(compressed(blob)) == blob


def test_numbers_that_repeat_become_short() -> None:
    assert len(compressed(STATE * 1000)) < len(STATE) * 100


def test_a_blob_that_was_stored_without_compression_is_read() -> None:
    assert decompressed(STATE) == STATE


@pytest.mark.parametrize(
    "stored",
    [
        compressed(STATE)[:-3],
        compressed(STATE)[:7],
        compressed(STATE)[:30] + b"\0\0\0" + compressed(STATE)[33:],
        b"zstd" + b"\xff" * 8 + compressed(STATE)[12:],
    ],
)
def test_a_damaged_blob_is_an_error_that_says_so(stored: bytes) -> None:
    with pytest.raises(StateError, match="stored state"):
        state_blob.load(decompressed(stored))
