"""scripts/mutate: workers that end are told and stop no others, constants change wherever they are known, and what does
not end is told from what is slow.
"""

import ast
import importlib
import json
import os
import signal
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from select import select
from types import ModuleType

import pytest

from tests.mutants.alone import BUSY_FOR_EVER, CAUGHT, SURVIVED, WAITS_FOR_EVER, Limits, alone
from tests.mutants.forks import in_forks
from tests.mutants.operators import mutants
from tests.mutants.trial import Trial, change_constants, imported


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


def busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_what_waits_while_the_machine_does_other_things_has_not_hung() -> None:
    assert alone(partial(time.sleep, 0.2), Limits(busy=0.1, waits=60)) == SURVIVED
    assert alone(partial(busy, 60), Limits(busy=0.1, waits=60)) == BUSY_FOR_EVER
    assert alone(partial(time.sleep, 60), Limits(busy=60, waits=0.1)) == WAITS_FOR_EVER


def test_each_step_of_a_try_has_limits_of_its_own() -> None:
    def steps() -> None:
        for _ in range(3):
            Limits(busy=0.1, waits=60).apply()
            busy(0.05)

    assert alone(steps) == SURVIVED


def test_a_program_in_the_place_of_a_try_keeps_its_limits() -> None:
    program = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    assert alone(lambda: os.execv(sys.executable, program), Limits(busy=0.1, waits=60)) == BUSY_FOR_EVER


def test_a_try_that_fails_or_is_killed_is_caught_and_what_it_started_is_ended() -> None:
    ours, its = os.pipe()

    def starts_another() -> None:
        if os.fork() == 0:
            time.sleep(60)  # it holds the pipe open
        os._exit(3)

    assert alone(starts_another, Limits(busy=60, waits=60)) == CAUGHT
    os.close(its)
    assert select([ours], [], [], 20)[0]
    assert os.read(ours, 1) == b""
    os.close(ours)
    assert alone(lambda: os.kill(os.getpid(), signal.SIGKILL)) == CAUGHT


SOURCE = '''
"""A module."""
from functools import partial

_MOST = 4
TWICE = 2 * _MOST
BOTH = (1, _MOST)
ELSEWHERE = [_MOST]


def least(number: int = 3) -> int:
    return number + 1
'''


def test_constants_that_are_made_of_a_changed_one_change_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mutated.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    module, using = importlib.import_module("mutated"), ModuleType("using")
    monkeypatch.setitem(sys.modules, "using", using)
    vars(using).update(TWICE=module.TWICE, _MOST=4)
    [mutant] = [each for each in mutants(Path("mutated.py")) if each.change()[1] == "_MOST = 5"]
    assert mutant.is_constant()
    change_constants(mutant)
    assert (module.TWICE, module.BOTH, module.ELSEWHERE) == (10, (1, 5), [5])
    assert (vars(using)["TWICE"], vars(using)["_MOST"]) == (10, 4), "a private name of the same value is another one"
    monkeypatch.delitem(sys.modules, "mutated")


def test_a_default_of_an_argument_is_no_constant_and_belongs_to_no_function(tmp_path: Path) -> None:
    path = tmp_path / "mutated.py"
    path.write_text(SOURCE)
    of_default = [each for each in mutants(path) if each.line == 11]
    assert [(each.function, each.is_constant()) for each in of_default] == [("", False)] * 2
    assert {each.function for each in mutants(path) if each.line == 12} == {"least"}


def test_tests_that_import_a_module_are_known_by_any_form_of_import() -> None:
    found = imported(ast.parse("import a.b\nfrom c import d\ndef f():\n    from e.f import g as h\n'x.y:Z', 'no. one'"))
    assert {*found} == {"a.b", "c", "c.d", "e.f", "e.f.g", "x.y"}


RECORDED = """
import sys
import pytest

sys.path.insert(0, {folder!r})
from recorded import begun, made, kept


@pytest.fixture(scope="module")
def shared():
    return made()


@pytest.fixture(autouse=True)
def own():
    begun()


def test_first(shared):
    assert kept() == 1


def test_second(shared):
    assert kept() == 1


def test_other():
    pass
"""


def test_what_a_fixture_of_the_module_runs_and_what_others_have_run_before_is_run_by_each_test(tmp_path: Path) -> None:
    (tmp_path / "controller").mkdir()
    functions = "def begun(): pass\n\ndef made(): pass\n\n@cache\ndef kept(): return 1\n"
    (tmp_path / "controller/recorded.py").write_text(f"from functools import cache\n\n{functions}")
    (tmp_path / "test_recorded.py").write_text(RECORDED.format(folder=str(tmp_path / "controller")))
    record = tmp_path / "record.json"

    def recording() -> None:
        trial = Trial((), jobs=1, quick=True, record=record, told=lambda *_: None)
        os._exit(pytest.main(["-q", "-p", "no:cacheprovider", str(tmp_path)], plugins=[trial]))

    assert alone(recording, folder=tmp_path) == SURVIVED
    recorded = json.loads(record.read_text())
    runs = {
        name.partition("::")[2]: {each.partition(":")[2] for each in test["runs"]}
        for name, test in recorded["tests"].items()
    }
    assert recorded["failed"] == []
    all_three = {"begun", "made", "kept"}
    assert runs == {"test_first": all_three, "test_second": all_three, "test_other": {"begun"}}
