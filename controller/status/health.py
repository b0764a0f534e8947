"""What of a cluster's status needs attention: the line at the top of ``trimtab status``."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from controller.model.controls import MOVING_MODES
from controller.model.some_of import some_of
from controller.settings.trimtab_toml import Settings
from controller.status.cluster import ClusterStatus
from controller.status.processes import differing_versions
from controller.wire.readable import counted, duration, utc

#: No tick for so many periods: the interval that runs, and one that is missing.
_PERIODS: Final = 3
#: Maximum number of problems in the line at the top.
_IN_LINE: Final = 2
#: Maximum number of brokers, processes or entries in a problem.
_NAMED: Final = 3


class Problem(NamedTuple):
    """Something that a person should look at."""

    #: Never changes its meaning.
    code: str
    #: A few words.
    title: str
    #: What was observed, and what to do.
    detail: str


def problems(status: ClusterStatus, settings: Settings, now_ms: float) -> list[Problem]:
    """All problems, the most urgent first; none where all is well, or on purpose as it is."""
    return [
        *_of_controllers(status, settings),
        *_of_executors(status, settings, now_ms),
        *_of_collectors(status, settings, now_ms),
        *_of_guardrails(status),
        *_of_processes(status, settings),
        *_of_brokers(status),
    ]


def health_line(problem_list: Sequence[Problem]) -> str:
    """One line for people, which fits a terminal of 80 columns unless titles are long."""
    if not problem_list:
        return "ok"
    return f"needs attention: {some_of(problem_list, _IN_LINE, between='; ', format_item=lambda each: each.title)}"


def _of_controllers(status: ClusterStatus, settings: Settings) -> Iterator[Problem]:
    if status.leader_unknown:
        yield Problem("election-unknown", "the election does not answer", status.leader_unknown)
    elif status.leader is None:
        yield Problem("no-leader", "no controller leads", "nothing is decided; start `trimtab run`")
    elif status.last is not None and status.ticked is not None:
        behind = (status.ticked - status.last.interval) // settings.intervals.period_ms
        if behind > _PERIODS:
            detail = f"the last one is of {utc(status.last.interval)}; {counted(behind, 'interval')} ended since"
            yield Problem("decides-late", "decisions are late", f"{detail}; look at the controller's log")


def _of_collectors(status: ClusterStatus, settings: Settings, now_ms: float) -> Iterator[Problem]:
    period_ms = settings.intervals.period_ms
    if status.ticked is not None and now_ms - status.ticked <= _PERIODS * period_ms:
        return
    since = "has ended" if status.ticked is None else f"has ended since {utc(status.ticked)}"
    collectors = status.processes.of("collector")
    if status.processes.unknown or collectors:
        running = f"; {counted(len(collectors), 'collector')} registered, look at the logs" if collectors else ""
        yield Problem("no-ticks", "no interval ends", f"no interval {since}{running}")
    else:
        yield Problem("no-collector", "no collector", f"no interval {since}; start `trimtab collect`")


def _of_executors(status: ClusterStatus, settings: Settings, now_ms: float) -> Iterator[Problem]:
    waiting, executors = status.unanswered, len(status.processes.of("executor"))
    if waiting is None or status.guardrails.mode not in MOVING_MODES:
        return
    if not waiting.nobody_executes(now_ms, executors=executors, settings=settings):
        return
    if status.processes.unknown:
        why = "no executor has answered"
    elif executors:
        why = f"{counted(executors, 'executor')} registered, look at the logs"
    else:
        why = "no executor is registered; start `trimtab execute`"
    yield Problem("nobody-executes", "nobody executes", f"{waiting}; {why}")


def _of_guardrails(status: ClusterStatus) -> Iterator[Problem]:
    guardrails = status.guardrails
    if guardrails.breaker.tripped_at is not None:
        yield Problem("breaker-tripped", "the breaker is tripped", f"{guardrails.breaker.why}; run `trimtab resume`")
    if guardrails.unknown:
        yield Problem("controls-unknown", "the controls cannot be read", guardrails.unknown)
    # While nothing is issued anyway, as in a dry run or after `trimtab hand-back`, the brokers are meant to balance.
    if guardrails.brokers_balance and guardrails.mode in MOVING_MODES and not guardrails.paused:
        yield Problem("brokers-balance", "the brokers balance, too", guardrails.brokers_balance)
    if guardrails.unconfirmed:
        names = sorted(guardrails.unconfirmed)
        detail = f"{_names(names)} do not list bundles that were moved to them"
        yield Problem("unconfirmed-moves", f"unconfirmed moves to {counted(len(names), 'broker')}", detail)
    for bundle, deaths in guardrails.fatal.items():
        detail = f"{counted(deaths, 'owner')} of it died in a row; see their logs, then run `trimtab resume`"
        yield Problem("bundle-kills-brokers", f"{bundle} kills brokers", detail)


def _of_processes(status: ClusterStatus, settings: Settings) -> Iterator[Problem]:
    # By its own clock, so that hosts whose clocks differ hide nothing, and accuse nobody.
    limit_seconds = settings.intervals.stalled_after_seconds
    still = [each.process for each in status.processes.running if each.process.standstill_ms > limit_seconds * 1000]
    if still:
        named = [
            f"{each.role} {each.host}, process {each.process}, for {duration(each.standstill_ms / 1000)}"
            for each in still
        ]
        title = f"{counted(len(still), 'process hangs', 'processes hang')}"
        detail = f"the main loop has not completed a round: {_names(named)}; the limit is {duration(limit_seconds)}"
        yield Problem("process-hangs", title, detail)
    if versions := differing_versions(status.processes):
        yield Problem("versions-differ", "versions differ", versions)
    if status.processes.unusable:
        names = sorted(status.processes.unusable)
        title = f"{counted(len(names), 'unusable entry', 'unusable entries')} in the registry"
        yield Problem("registry-entry", title, _names(names))


def _of_brokers(status: ClusterStatus) -> Iterator[Problem]:
    if "all" in status.silent:
        yield Problem("silent-brokers", "the brokers do not answer", status.silent["all"])
    elif status.silent:
        title = f"{counted(len(status.silent), 'broker does', 'brokers do')} not answer"
        yield Problem("silent-brokers", title, _names(sorted(status.silent)))


def _names(names: list[str]) -> str:
    return some_of(names, _NAMED)
