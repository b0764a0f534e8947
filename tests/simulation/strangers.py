"""Bugs that somebody wrote who had not read ``planted.py``: each replaces one text of one file of the product.

They are read as a reviewer would read a patch.  The functions that a patch changes get its code while a seed is played.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple


class Patch(NamedTuple):
    """*old* stands once in the source of *module*; with the bug *new* stands there."""

    module: str
    old: str
    new: str


PATCHES: Final[dict[str, Patch]] = {
    "expiry-in-minutes": Patch(
        "controller.executor.judge",
        "if now_ms >= command.expires_at_ms:",
        "if now_ms // 60_000 > command.expires_at_ms // 60_000:",
    ),
    "marks-not-looked-at": Patch(
        "controller.log.inbox",
        "return 0 if event is None else event.epoch",
        "return event.epoch if type(event).__name__ == 'CommandEvent' else 0",
    ),
    "success-believed": Patch(
        "controller.executor.attempt",
        "                observation, answer = _effect(command, cluster, act_failure, sleep)",
        "                observation, answer = (\n"
        "                    (observation, Answer(status='done'))\n"
        "                    if act_failure is None\n"
        "                    else _effect(command, cluster, act_failure, sleep)\n"
        "                )",
    ),
    "window-counts-from-the-next-interval": Patch(
        "controller.cycle.guardrails.budgets",
        "            self._used[line] += amount\n        return None",
        "            self._used[line] += amount * (not line.key.startswith('window.'))\n        return None",
    ),
    "tick-tried-again": Patch(
        "controller.collector.ticks",
        "        except TrimtabError:\n            self.leads = False\n            raise\n        self._arrivals.end",
        "        except TrimtabError as error:\n"
        "            raise LogOfflineError(str(error)) from error\n"
        "        self._arrivals.end",
    ),
    "controls-kept-for-minutes": Patch(
        "controller.adapters.controls_in_force",
        '        """Read the store. Returns why no commands may be issued, or "" if they may."""\n',
        '        """Read the store."""\n'
        "        now = self._now_ms()\n"
        "        if self._known is not None and 0 <= now - getattr(self, '_read_ms', 0) < 150_000:\n"
        "            return ''\n"
        "        self._read_ms = now\n",
    ),
    "call-under-way-sent-again": Patch(
        "controller.executor.judge",
        "    if failure.sent and failure.status in _MAYBE_UNDER_WAY:",
        "    if failure.sent and failure.status in _MAYBE_UNDER_WAY and failure.status:",
    ),
    "exclusion-only-where-nothing-moves": Patch(
        "controller.cycle.ordered",
        "    if controls.excluded:\n",
        "    if controls.excluded and not controls.moves_load:\n",
    ),
    "approval-kept": Patch(
        "controller.adapters.approvals.approved",
        '        return "" if look is None else self._why_not(orders, look, now_ms)',
        "        kept = self.__dict__.setdefault('_approved', set())\n"
        "        why = '' if orders.plan in kept or look is None else self._why_not(orders, look, now_ms)\n"
        "        if not why:\n"
        "            kept.add(orders.plan)\n"
        "        return why",
    ),
    "old-report-counts": Patch(
        "controller.cycle.decide",
        "    oldest = interval - policy.balancer.report_ttl_ms\n",
        "    oldest = 0\n",
    ),
    "commands-before-their-entry": Patch(
        "controller.log.followed",
        "        else:\n            self._decide(parts, last, before_commit)\n            self._follow(follow)\n\n",
        "        else:\n            self._follow(follow)\n            self._decide(parts, last, before_commit)\n\n",
    ),
    "tick-before-not-completed": Patch(
        "controller.log.ticks",
        "        ticks.complete([] if intent is None else ticks_of(self._read(intent.value)))",
        "        ticks.complete([])",
    ),
    "begun-forgotten-at-the-next": Patch(
        "controller.log.inbox",
        "        owned.memory.started.add(command)\n",
        "        owned.memory.started = {each for each in owned.memory.started if each not in owned.memory.answered}\n"
        "        owned.memory.started.add(command)\n",
    ),
    "time-from-before-standing-still": Patch(
        "controller.engine",
        "        controls = self._dated(controls)  # they were",
        "        # they were",
    ),
    "delta-of-what-was-not-written": Patch(
        "controller.log.journal",
        "        self._open_scope().append(records, follow, before)\n        self._writer.wrote(encoded)\n",
        "        self._writer.wrote(encoded)\n        self._open_scope().append(records, follow, before)\n",
    ),
    "drained-brokers-filled": Patch(
        "controller.cycle.ordered",
        "    return replace(policy, filters=(step, *policy.filters), shedder=shedder)",
        "    return replace(policy, shedder=shedder)",
    ),
    "failure-frees-its-budget": Patch(
        "controller.cycle.outcomes",
        "        if result.status in _NEVER_BEGUN:",
        "        if result.status in {*_NEVER_BEGUN, 'failed'}:",
    ),
    "change-lost-to-another": Patch(
        "controller.adapters.election.changes",
        "        return (before, after) if after == before or store.write(after, version) else None",
        "        return (before, after) if after == before or store.write(after, version) is not None else None",
    ),
    "stop-all-by-the-journal-alone": Patch(
        "controller.log.fencing",
        "        epoch = newer_epoch(stored, written) + 1\n",
        "        epoch = written + 1\n",
    ),
    "resume-ends-later-pauses": Patch(
        "controller.adapters.approvals.granted",
        " and pause.at_ms <= at_ms for value, at_ms in ended)",
        " for value, _ in ended)",
    ),
}


@contextmanager
def patched(name: str) -> Iterator[None]:
    """Have the product have the bug *name*."""
    patch = PATCHES[name]
    module = import_module(patch.module)
    changed = _changed_functions(module, _with_bug(module, patch))
    codes = [(live, live.__code__) for live, _ in changed]
    for live, code in changed:
        live.__code__ = code
    try:
        yield
    finally:
        for live, code in codes:
            live.__code__ = code


def _with_bug(module: ModuleType, patch: Patch) -> dict[str, Any]:
    """The names of *module* with the bug of *patch*."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    if source.count(patch.old) != 1:
        raise ValueError(
            f"{patch.module}: the text to replace stands there {source.count(patch.old)} times: {patch.old}"
        )
    names: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(source.replace(patch.old, patch.new), str(module.__file__), "exec"), names)
    return names


def _changed_functions(module: ModuleType, names: dict[str, Any]) -> list[tuple[FunctionType, Any]]:
    live, other = dict(functions_of(module)), dict(_functions(module.__name__, names))
    return [(live[path], other[path].__code__) for path in live if live[path].__code__ != other[path].__code__]


def functions_of(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that *module* defines, by their paths."""
    return _functions(module.__name__, vars(module))


def _functions(module: str, names: Any, path: str = "") -> Iterator[tuple[str, FunctionType]]:
    for name, value in names.items():
        found = getattr(value, "__func__", getattr(value, "fget", value))
        found = getattr(found, "__wrapped__", found)
        if isinstance(found, FunctionType) and found.__module__ == module:
            yield f"{path}.{name}", found
        elif isinstance(value, type) and value.__module__ == module and not path:
            yield from _functions(module, vars(value), f"{path}.{name}")
