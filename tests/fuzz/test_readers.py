"""No reader answers spoilt input with anything but a value or its own error, and none allocates more than a little.

Each reader meets fixed seeds and new ones in turn, for a while: all of them for one second with plain pytest, and for
half a minute in scripts/test (the hypothesis profile ``thorough``).  The ``seed`` of a failure is all it takes to see
it again.
"""

import itertools
import random
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from controller.aggregate.columns.rows import METRICS
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.model.errors import WireError
from controller.wire.rows import Located, rows_from_records
from tests.effort import tries
from tests.fuzz.readers import CORPUS, JSON_METRICS, MAX_BYTES, READERS, Reader, folder_of, metric, sweeps_in_arrow
from tests.fuzz.spoil import spoilt, spoilt_bytes, spoilt_json
from tests.property.test_states_come_back import same
from tests.records import PERIOD

#: How long each reader is tried.  Of processor time: a busy machine tries no fewer cases.
SECONDS = tries(plain=40, thorough=1000) / 1000
#: So many cases it meets in any case.
FEWEST = 12
NEW = random.SystemRandom().randrange(1 << 32)
#: What reading one record of the largest allowed size may take, bytes.
MOST_MEMORY = 64 * MAX_BYTES


def seeds() -> Iterator[int]:
    """Fixed ones and new ones in turn, until the time is over."""
    end = time.process_time() + SECONDS
    for nth in itertools.count():
        if nth >= FEWEST and time.process_time() > end:
            return
        yield nth // 2 + (NEW if nth % 2 else 0)


def read(reader: Reader, seed: int, folder: Path) -> None:
    value = spoilt(reader.samples, reader.spoil, seed)
    try:
        reader.read(value, folder)
    except reader.error:
        pass
    except Exception as error:
        raise AssertionError(f"seed {seed}: {value[:300]!r} ({len(value)} bytes) led to {error!r}") from error


@pytest.mark.parametrize("name", READERS)
def test_the_samples_are_read(name: str, tmp_path: Path) -> None:
    for sample in READERS[name].samples:
        READERS[name].read(sample, tmp_path)


@pytest.mark.parametrize("name", [name for name in READERS if (CORPUS / folder_of(name)).is_dir()])
def test_the_corpus_leads_to_a_value_or_to_the_readers_own_error(name: str, tmp_path: Path) -> None:
    for path in (CORPUS / folder_of(name)).iterdir():
        with suppress(READERS[name].error):
            READERS[name].read(path.read_bytes(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_spoilt_input_leads_to_a_value_or_to_the_readers_own_error(name: str, tmp_path: Path) -> None:
    for seed in seeds():
        read(READERS[name], seed, tmp_path)


@pytest.mark.parametrize("name", ["metrics in JSON", "sweeps in Arrow", "results", "commands"])
def test_spoilt_records_are_read_in_little_memory(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    read(reader, 0, tmp_path)
    for seed in seeds():
        tracemalloc.start()
        read(reader, seed, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MOST_MEMORY, f"seed {seed} took {peak} bytes"


def test_whatever_is_accepted_folds_into_a_state_that_comes_back(tmp_path: Path) -> None:
    limits = DetailLimits(topics=2, sessions=5, msg_rate=10, throughput=1e5)
    options = FoldOptions(bundle_ttl_ms=PERIOD, detail=limits)
    state, accepted = ShardState(shard=0, shards=1), 0
    for offset, seed in enumerate(seeds()):
        arrow = seed % 3 == 0
        samples, spoil = (sweeps_in_arrow(), spoilt_bytes) if arrow else (JSON_METRICS, spoilt_json)
        try:
            record = metric(spoilt(samples, spoil, seed), tmp_path)
        except WireError:
            continue
        if record is None:
            continue
        accepted += 1
        at = Located(source=METRICS, partition=offset % 2, offset=offset, record=record)
        with np.errstate(all="raise"):
            state, snapshots = fold(state, rows_from_records([at], limits), options)
        for snapshot in snapshots:
            assert same(type(snapshot).from_blob(snapshot.to_blob()), snapshot), f"seed {seed}"
        assert same(state_blob.load(state_blob.dump(state)), state), f"seed {seed}"
    assert accepted > 0
