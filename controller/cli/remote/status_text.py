"""What ``trimtab status --server`` prints for people: the rows of the local command, as far as the answer has them."""

from typing import Final

from rich.console import Console

from controller.adapters.registration import RegisteredProcesses, SeenProcess
from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.cli.texts.cluster_status import LABEL
from controller.model.some_of import some_of
from controller.status.health import Problem, health_line
from controller.status.processes import process_cells, process_rows
from controller.wire.answers.base import CommandAnswer
from controller.wire.answers.status import (
    BundleAnswer,
    ChoiceAnswer,
    GuardrailsAnswer,
    ImbalanceAnswer,
    PauseAnswer,
    ProcessesAnswer,
    StatusAnswer,
)
from controller.wire.decision_texts import became, does, verdict_text
from controller.wire.process import RunningProcess
from controller.wire.readable import ago, amounts, counted, in_number, in_time, utc

#: Budgets and brokers that a row names.
_NAMED: Final = 5


def print_cluster(out: Console, status: StatusAnswer, now_ms: float) -> None:
    """Print all of *status*, as of *now_ms*."""
    problems = [Problem(each.code, each.title, each.detail) for each in status.problems]
    processes = _processes(status.processes)
    rows = [
        ("health", health_line(problems)),
        *(("", f"{each.title}: {each.detail}") for each in problems),
        ("cluster", status.cluster),
        ("leader", _leader(status, now_ms)),
        ("epoch", str(status.epoch) if status.epoch else "none: no controller has led yet"),
        *process_rows(processes),
        ("decided", _decided(status, now_ms)),
        *_pulsar(status),
        *_guardrail_rows(status.guardrails),
        ("ticked", "never" if status.ticked is None else f"{utc(status.ticked)}, {ago(now_ms, status.ticked)}"),
        *_imbalance(status.imbalance),
        *(("silent", f"{broker}: {why}") for broker, why in status.silent.items()),
        *_reasons(status),
        *(("policies", why) for why in status.unreadable_policies),
        ("in flight", counted(sum(not each.dry_run for each in status.in_flight.values()), "command")),
    ]
    print_fields(out, rows, label=LABEL)
    for command in status.commands:
        print_line(out, _command_line(command), first="  ", rest="    ")
    if processes.running:
        out.print()
        header = columns("role", "where", "version", "runs for", "seen", "does", prose=("does",))
        print_table(out, header, [process_cells(each, now_ms) for each in processes.running])


def print_bundle(out: Console, answer: BundleAnswer) -> None:
    """Print all of *answer*."""
    if answer.exists is None:
        rows = [("owner", "unknown: without a section [pulsar] the brokers are not asked")]
    elif not answer.exists:
        rows = [("now", "the brokers have no such bundle")]
    elif not answer.owner:
        rows = [("owner", "nobody, until a client looks up a topic in it")]
    else:
        rows = [("owner", f"{answer.owner}, now"), *_load_rows(answer.load)]
    command = answer.last_command
    if command is None:
        rows.append(("decided", "no command about it lately"))
    else:
        rows += [
            ("decided", f"{utc(command.interval)}: {command.action} {does(command)}"),
            ("because", verdict_text(command.why)),
            ("result", became(command.result)),
        ]
    if answer.judged is not None:
        rows.append(("judged", utc(answer.judged)))
        rows += [("", f"{verdict_text(each)}{f', by {each.by}' if each.by else ''}") for each in answer.verdicts]
    print_fields(out, [("bundle", answer.bundle), *rows], label=LABEL)


def _load_rows(load: dict[str, float]) -> list[tuple[str, str]]:
    ways = [
        f"{way.lower()} {amounts([load.get(f'msgRate{way}', 0.0)], 'msg/s')[0]},"
        f" {amounts([load.get(f'msgThroughput{way}', 0.0)], 'bytes/s')[0]}"
        for way in ("In", "Out")
    ]
    return [("load", "; ".join([counted(int(load.get("topics", 0)), "topic"), *ways]))]


def _processes(answer: ProcessesAnswer) -> RegisteredProcesses:
    running = [
        SeenProcess(
            process=RunningProcess.model_validate(each.model_dump(exclude={"seen_at"}), by_name=True),
            seen_ms=each.seen_at,
        )
        for each in answer.running
    ]
    return RegisteredProcesses(
        running=tuple(running), unusable=answer.unusable, left_out=answer.left_out, unknown=answer.unknown
    )


def _leader(status: StatusAnswer, now_ms: float) -> str:
    leader = status.leader
    if leader is None:
        return f"unknown: {status.leader_unknown}" if status.leader_unknown else "none: no controller runs"
    who = f"{leader.host}, process {leader.process}" if leader.host else "a process that does not say who it is"
    return f"{who}, since {utc(leader.since_ms)}, {ago(now_ms, leader.since_ms)}"


def _decided(status: StatusAnswer, now_ms: float) -> str:
    last = status.last
    if last is None:
        return "nothing decided yet"
    how = ", ".join([last.mode, *(note for note, on in (("paused", last.paused), ("stale", last.stale)) if on)])
    return f"{utc(last.interval)}, {ago(now_ms, last.interval)}, {how}: {in_number(last.summary)}"


def _pulsar(status: StatusAnswer) -> list[tuple[str, str]]:
    return [] if status.last is None or status.last.pulsar is None else [("pulsar", status.last.pulsar.text)]


def _imbalance(even: ImbalanceAnswer | None) -> list[tuple[str, str]]:
    if even is None:
        return []
    text = (
        f"the busiest of {counted(even.brokers, 'broker')} has {even.msg_rate:.2f} times the average by messages"
        f" ({even.busiest}), {even.msg_throughput:.2f} times by bytes"
    )
    return [("imbalance", text)]


def _reasons(status: StatusAnswer) -> list[tuple[str, str]]:
    if status.judged is None:
        return []
    counts = ", ".join(f"{reason} {count}" for reason, count in status.reasons.items())
    return [("reasons", f"{utc(status.judged)}: {counts or 'none'}")]


def _guardrail_rows(guardrails: GuardrailsAnswer) -> list[tuple[str, str]]:
    breaker, mode, paused = guardrails.breaker, guardrails.mode, guardrails.paused
    chosen = "by the settings" if mode.set is None else f"{_who(mode.set)}; the settings say {mode.settings}"
    pauses = "; ".join(map(_pause, paused.pauses)) or "by the settings"
    rows = [
        ("mode", f"{mode.in_force}, {chosen}"),
        ("paused", f"yes, {pauses}" if paused.in_force else "no"),
        ("drained", ", ".join(guardrails.drained)),
        ("excluded", ", ".join(guardrails.excluded)),
        ("plan", f"{guardrails.plan} is being applied, so strategies unload nothing" if guardrails.plan else ""),
        ("controls", f"cannot be read, so nothing is issued: {guardrails.unknown}" if guardrails.unknown else ""),
        ("balancing", guardrails.brokers_balance),
        (
            "breaker",
            f"closed, {counted(breaker.failures_in_a_row, 'failure')} in a row"
            if breaker.tripped_at is None
            else f"TRIPPED at {utc(breaker.tripped_at)}: {breaker.why}",
        ),
        (
            "unconfirmed",
            some_of(
                [
                    f"{name} does not list {counted(len(each), 'bundle')}"
                    for name, each in guardrails.unconfirmed.items()
                ],
                _NAMED,
            ),
        ),
        (
            "kill brokers",
            ", ".join(f"{name} ({counted(each, 'owner')} died in a row)" for name, each in guardrails.fatal.items()),
        ),
        ("brokers", f"joined or left: {names}" if (names := _came_or_went(guardrails)) else ""),
        ("windows", guardrails.maintenance or "commands are allowed now"),
        ("budgets", _budgets(guardrails)),
    ]
    return [(name, text) for name, text in rows if text]


def _came_or_went(guardrails: GuardrailsAnswer) -> str:
    return ", ".join(sorted({*guardrails.came, *guardrails.went}))


def _budgets(guardrails: GuardrailsAnswer) -> str:
    """The budgets of which half is used, the fullest first."""
    used = sorted(guardrails.budgets, key=lambda each: each.used / each.limit, reverse=True)
    full = [
        f"{each.of}: {each.used:,} of {each.limit:,} {in_time(each.unit)} ({each.used / each.limit:.0%})"
        for each in used
        if 2 * each.used >= each.limit
    ]
    return some_of(full, _NAMED) if full else "less than half of each is used" if used else "none are set"


def _who(choice: ChoiceAnswer) -> str:
    return f"set by {choice.by} at {utc(choice.at_ms)}{f': {choice.reason}' if choice.reason else ''}"


def _pause(pause: PauseAnswer) -> str:
    until = f" until {utc(pause.until_ms)}" if pause.until_ms else ""
    return f"set by {pause.by} at {utc(pause.at_ms)}{until}{f': {pause.reason}' if pause.reason else ''}"


def _command_line(command: CommandAnswer) -> str:
    dry_run = "dry run of " if command.mode == "dry_run" else ""
    what = f"{utc(command.interval)}  {dry_run}{command.action} {command.bundle}"
    return f"{what}  {does(command)}: {became(command.result)}"
