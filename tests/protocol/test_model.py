"""The protocol keeps its rules in every state of the model, and each of its guards is necessary for that."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.protocol.check import Searched, search
from tests.protocol.model import GUARDS, NOT_NEEDED, OF_DECISIONS, OF_PLANS, Bound

_ROOT = Path(__file__).parents[2]
_ONE = Bound(entries=((0,),), partition=(0,), leader_faults=0, executor_faults=0)
_TWO = Bound(entries=((0,), (1,)), partition=(0, 0), leader_faults=0, executor_faults=0)
_ASKED = Bound(
    entries=((0,), (1,)), partition=(0, 0), controllers=1, executors=1, leader_faults=0, executor_faults=0, asks=True
)
_PLAN = Bound(entries=((0,), (1,)), partition=(0, 0), leader_faults=0, executor_faults=0, needed=1)
#: What plain pytest searches.
QUICK = {
    "leaders crash or are replaced": _TWO._replace(leader_faults=1),
    "the same on a followed log": _TWO._replace(followed=True, leader_faults=1, executors=1),
    "executors crash or are replaced, commands come again and expire": _TWO._replace(
        executor_faults=1, repeats=1, expiries=1
    ),
    "executors on a followed log": _TWO._replace(followed=True, executor_faults=2, controllers=1),
    "stop-all": _ONE._replace(stops=1, executors=1),
    "a plan in waves": _PLAN._replace(controllers=1, executors=1),
    "decisions that wait for approval": _ASKED,
    "the same on a followed log, and leaders that crash": _ASKED._replace(followed=True, leader_faults=1),
}
#: What scripts/test searches, too.
THOROUGH = {
    "decisions that wait, and leaders that crash": _ASKED._replace(controllers=2, leader_faults=1),
    "decisions that wait, and leaders that follow each other on a followed log": _ASKED._replace(
        followed=True, controllers=2, leader_faults=1
    ),
    "three commands, leaders, executors, repeats and expiry": Bound(repeats=1, expiries=1),
    "a plan of three moves with two approvals": Bound(
        entries=((0,), (1, 2)), needed=2, leader_faults=0, executor_faults=0
    ),
}
#: The whole bound.
WHOLE = {
    "three commands on a followed log": Bound(followed=True),
    "three commands in two partitions": Bound(partition=(0, 1, 0)),
    "leaders twice, executors twice": Bound(leader_faults=2, executor_faults=2, entries=((0,), (1,)), partition=(0, 0)),
    "stop-all, leaders and executors": _TWO._replace(stops=1, leader_faults=1),
    "stop-all on a followed log": _ONE._replace(
        followed=True, controllers=1, executors=1, leader_faults=1, executor_faults=1, stops=1
    ),
    "decisions that wait, leaders and executors on a followed log": _ASKED._replace(
        followed=True, controllers=2, leader_faults=1, executor_faults=1
    ),
    "a plan, and leaders that crash": Bound(leader_faults=1, executor_faults=0, needed=1),
}
#: Where leaving a guard out is found with the fewest states; where it is not named, QUICK has it.
_FOUND_WITH = {
    "journal fence": _ONE._replace(leader_faults=1),
    "read behind the fence": _ONE._replace(leader_faults=1),
    "new epoch": _ONE._replace(stops=1),
    "epoch before commands": _TWO._replace(leader_faults=1),
    "controls of each decision": _TWO._replace(stops=1, controllers=1, executors=1),
    "commands fence": _ONE._replace(followed=True, leader_faults=1),
    "complete": _ONE._replace(followed=True, leader_faults=1, controllers=1),
    "complete what is missing": _ONE._replace(followed=True, leader_faults=1, controllers=1),
    "look": _TWO._replace(leader_faults=1),
    "epoch stored": _ONE._replace(
        followed=True, controllers=1, executors=1, leader_faults=1, executor_faults=1, stops=1
    ),
    "expiry": _ONE._replace(expiries=1),
    "begin": _ONE._replace(executor_faults=1),
    "second look": _ONE._replace(expiries=1),
    "begun is looked at": _ONE._replace(executor_faults=1),
    "claim at begin": _ONE._replace(executor_faults=1),
    "claim at finish": _ONE._replace(executor_faults=1, expiries=1),
    "answered is passed over": _ONE._replace(executor_faults=1, repeats=1),
    "complete results": _ONE._replace(followed=True, executor_faults=1),
    "numbered results": _ONE._replace(followed=True, executor_faults=1),
    "pause first": _ONE._replace(stops=1),
    "stop-all fences": _ONE._replace(stops=1),
    **dict.fromkeys(OF_PLANS, _PLAN._replace(controllers=1, executors=1)),
    **dict.fromkeys(OF_DECISIONS, _ASKED),
}
#: Parts of names in GUARDS that are modules.
_MODULES = {"judge", "controls"}
#: Takes seconds.
_SLOW = {"epoch stored"}
#: What plain pytest leaves out: it takes a second.
_LONG = {*_SLOW, "controls of each decision", "settled wave", "the same on a followed log", "a plan in waves"}


def _without_long(names: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(each, marks=[pytest.mark.slow] if each in _LONG else []) for each in names]


_searched = cache(search)


def keeps_all_rules(found: Searched) -> None:
    assert found.broken is None, f"\n{found.broken}"


@pytest.mark.parametrize("bound", _without_long(QUICK))
def test_every_state_keeps_the_rules_and_leads_to_a_quiet_end(bound: str) -> None:
    keeps_all_rules(search(QUICK[bound]))


@pytest.mark.slow
@pytest.mark.parametrize("bound", THOROUGH.values(), ids=THOROUGH)
def test_the_same_with_three_commands(bound: Bound) -> None:
    keeps_all_rules(search(bound))


@pytest.mark.extended
@pytest.mark.parametrize("bound", WHOLE.values(), ids=WHOLE)
def test_the_same_in_the_whole_bound(bound: Bound) -> None:
    keeps_all_rules(search(bound))


@pytest.mark.parametrize("guard", _without_long(GUARDS))
def test_each_guard_is_necessary(guard: str) -> None:
    found = search(_FOUND_WITH[guard]._replace(without=frozenset({guard})))
    assert found.broken is not None
    if guard not in _SLOW:  # the whole bound has it
        keeps_all_rules(_searched(_FOUND_WITH[guard]))


@pytest.mark.slow
def test_the_journals_fence_is_enough_where_nobody_asks_the_election() -> None:
    keeps_all_rules(search(_TWO._replace(leader_faults=1, without=frozenset({NOT_NEEDED}))))


def test_what_breaks_a_rule_is_told_step_by_step() -> None:
    broken = search(_ONE._replace(executor_faults=1, without=frozenset({"begin"}))).broken
    assert broken is not None
    assert broken.trace[-1] == "an executor begins command 0"
    assert "it was begun before" in str(broken)
    assert [each.kind for each in broken.events][:4] == ["epoch", "marked", "leads", "entry"]


@pytest.mark.slow
def test_the_page_has_every_guard_and_each_names_code_that_there_is() -> None:
    page = (_ROOT / "docs" / "protocol.md").read_text()
    code = "".join(each.read_text() for each in (_ROOT / "controller").rglob("*.py"))
    for guard, what in GUARDS.items():
        assert f"| {guard} | {what} |" in page
        names = [part for name in re.findall(r"`([\w.]+)`", what) for part in name.split(".") if part not in _MODULES]
        assert all(re.search(rf"(def|class) {name}\b", code) for name in names), names
