"""scripts/mutate's workers: one that ends is told, and neither stops nor delays the others."""

import os
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from tests.mutants.forks import in_forks


def tried(stays: Path, number: int) -> int:
    match number:
        case 3:
            os._exit(7)
        case 4:
            if os.fork() == 0:  # what it has started outlives it, and holds its pipe open
                for _ in range(600):
                    if not stays.exists():
                        break
                    time.sleep(0.05)
                os._exit(0)
            os._exit(8)
    return number * number


def test_every_try_is_told_and_a_worker_that_ends_costs_its_own_try_alone(tmp_path: Path) -> None:
    told, ended = dict[int, int](), dict[int, int]()
    stays, began = tmp_path / "stays", time.monotonic()
    stays.touch()
    try:
        in_forks(range(9), 2, partial(tried, stays), told.__setitem__, ended.__setitem__)
    finally:
        stays.unlink()  # else this test's own worker would be waited for as well
    assert told == {0: 0, 1: 1, 2: 4, 5: 25, 6: 36, 7: 49, 8: 64}
    assert ended == {3: 7, 4: 8}
    assert time.monotonic() - began < 20


def test_more_workers_than_tries_and_no_try_at_all(tmp_path: Path) -> None:
    told, run = dict[int, int](), partial(tried, tmp_path)
    in_forks(range(1), 4, run, told.__setitem__, told.__setitem__)
    assert told == {0: 0}
    in_forks(range(0), 4, run, told.__setitem__, told.__setitem__)
    assert told == {0: 0}


def test_workers_end_where_the_run_is_broken_off() -> None:
    def slow(number: int) -> int:
        time.sleep(20 * number)
        return number

    def broken_off(_try: int, _result: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_forks(range(2), 1, slow, broken_off, broken_off)
    for worker in active_children():
        worker.join(10)
        assert not worker.is_alive()
