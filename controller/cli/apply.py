"""``trimtab apply``: carry out a plan that a person has approved by its hash, or one that was proposed and approved."""

import re
import time
import uuid
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer
from rich.console import Console

from controller.adapters.approvals.contents import VerifiedContent, plan_content, verified_content
from controller.adapters.approvals.making import propose_plan
from controller.adapters.approvals.standing import ProposalSubject
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore
from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.process import signals
from controller.cli.controls import By, ReasonOption, change, choice_of
from controller.cli.plan import tell_plan
from controller.cli.shared import failures
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import now_ms
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.option_groups import grouped
from controller.cli.shared.output_file import require_writable
from controller.cli.shared.reachable import require
from controller.cli.shared.restart_hook import HookOptions, broker_restarts
from controller.cli.shared.signing import KeyOption, proposal_with, refuse_unused_key, signer_with
from controller.cycle.ordered import HOLD_INTERVALS, HOLD_MS
from controller.log.elections import election_system
from controller.model.controls import MOVING_MODES, Choice
from controller.model.errors import PlanRefusedError, ProposalRefusedError, TrimtabError
from controller.offline.plans.applying import Applied, PlanRun, together
from controller.offline.plans.plan_file import read_plan_bytes, refuse_other_cluster
from controller.offline.plans.progress import plan_progress
from controller.offline.plans.proposal_hold import ProposalHold, step_to_do
from controller.offline.plans.repair import repaired
from controller.offline.plans.restarting import BrokerRestarts, RestartFailedError, first_step
from controller.offline.plans.source import PlanSource, source_of_log
from controller.offline.plans.step_lease import PlanHaltedError, Surroundings
from controller.planning.plans.plan import Plan
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.plan import ApplyAnswer
from controller.wire.readable import counted

#: Digits of the hash that are enough.
_SHORTEST_HASH: Final = 32
_LEFT_BEHIND: Final = 1

_File: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="PLAN", help="The file that `trimtab plan` wrote.", show_default=False)
]
_Hash: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--hash",
        help=f"The hash that was approved: all of it, or its first {_SHORTEST_HASH} digits or more.",
        show_default=False,
    ),
]
_Proposal: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--proposal",
        metavar="ID",
        help="Carry out this approved proposal, in place of a file: docs/approvals.md.",
        show_default=False,
    ),
]
_Step: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100_000,
        help="Carry out this step, if the plan has several; with --hook also those after it.",
        show_default="the only one; with --hook the first that is not done",
    ),
]
_Tolerance: TypeAlias = Annotated[
    float,
    typer.Option(min=0.0, max=1000.0, help="The load of a bundle may differ from the plan by up to this many percent."),
]
_Repair: TypeAlias = Annotated[
    bool,
    typer.Option("--repair", help="Issue nothing: plan the remaining moves for the cluster as it is now.  Needs -o."),
]
_Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="With --repair: the new plan's file.", dir_okay=False, show_default=False),
]
_Intervals: TypeAlias = Annotated[
    int, typer.Option(min=0, max=10_000, help="Read this many intervals of the log before each wave, for averages.")
]


@grouped
def apply(
    file: _File = None,
    approved: _Hash = None,
    proposal: _Proposal = None,
    key: KeyOption = None,
    step: _Step = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the plan against the cluster.")] = False,
    repair: _Repair = False,
    output: _Output = None,
    tolerance: _Tolerance = 25.0,
    intervals: _Intervals = 30,
    reason: ReasonOption = "",
    by: By = "",
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.apply")] = False,
    *,
    hook: HookOptions,
) -> None:
    """Carry out an approved plan: check it against the cluster, then hand its waves to the controllers, one by one.

    The controllers issue the commands, with all guardrails; `trimtab pause` and `resume` hold, and `stop-all` ends it.
    Ctrl-C ends it after what is issued; started again, it goes on where it was.  With --hook it also restarts the
    brokers that the plan empties, step after step: docs/restarts.md.

    Give a plan's file with --hash, or --proposal.  Where [approvals] demands signatures, controllers obey proposals
    alone: with --key a file is proposed first.

    Exit codes: 0 carried out; 1 it was stopped, the cluster has changed, a bundle is left behind, or a broker is not
    back; 2 the plan or an option is invalid; 130 ended by Ctrl-C.
    """
    unused = key if proposal or check or repair else None
    _refuse_pairs(output, unused, repair=repair, check=check, hook=bool(hook.command()))
    options, made = _ApplyOptions(step, tolerance / 100, intervals, conf, as_json, hook), choice_of("", reason, by)
    if proposal is not None:
        _refuse_beside_a_proposal(file, approved, output, check=check)
        _apply_proposal(_settings(conf, key), proposal, made, options)
        return
    read = _read(*_whole(file, approved))
    settings, plan, sha256 = _settings(conf, key), read.plan, read.checked.subject.hash
    if settings.approvals.demanded and not (check or repair):
        _propose(settings, read, key, made)
        _apply_proposal(settings, sha256, made, options, read)
        return
    refuse_other_cluster(plan, settings, conf)
    with long_work("waiting for the log and the election"):
        require(settings, Part.LOG, Part.ELECTION)
    if repair:
        _repair(settings, plan, output, options)
    else:
        _apply_plan(settings, plan, sha256, made, options, check=check)


def _settings(conf: Path, key: Path | None) -> Settings:
    settings = read_settings(conf)
    refuse_unused_key(settings, key)
    return settings


def _refuse_beside_a_proposal(file: Path | None, approved: str | None, output: Path | None, *, check: bool) -> None:
    if file is not None or approved is not None or output is not None or check:
        raise typer.BadParameter("it goes with no file, --hash, --check or --repair", param_hint="--proposal")


def _whole(file: Path | None, approved: str | None) -> tuple[Path, str]:
    if file is None or approved is None:
        raise typer.BadParameter("give a plan's file and --hash, or --proposal", param_hint="PLAN")
    return file, approved


class _ReadPlan(NamedTuple):
    """A plan's file, as it was read once."""

    content: bytes
    checked: VerifiedContent
    plan: Plan


class _ApplyOptions(NamedTuple):
    """Options of every way to carry a plan out."""

    step: int | None
    tolerance: float
    intervals: int
    conf: Path
    as_json: bool
    hook: HookOptions

    def numbers(self, first: int, plan: Plan) -> range:
        """The steps of *plan* to carry out, from 0: *first*, and with a hook all after it."""
        return range(first, first + 1 if self.hook.hook is None else len(plan.steps))


def _apply_plan(
    settings: Settings, plan: Plan, sha256: str, made: Choice, options: _ApplyOptions, *, check: bool
) -> None:
    """Carry out *plan*, which nobody proposed; or only *check* it."""
    with closing(election_system(settings).controls()) as store:
        around = _surroundings(settings, options.conf, store, options.intervals, made, quiet=options.as_json)
        restarts, step = broker_restarts(options.hook, settings, plan, sha256), options.step
        if restarts is not None and step is None:
            step = first_step(store.read()[0], sha256)
        runs = _runs(plan, sha256, options.numbers(_number(plan, step), plan), around, restarts, options)
        if check:
            _tell_check(runs[0], as_json=options.as_json)
            return
        _refuse_what_holds_it_back(settings, options.conf, store)
        with signals.interrupts(exit_code=signals.INTERRUPTED):
            done = [run.run() for run in runs]
        _tell_end(runs[-1], together(done), as_json=options.as_json)


def _runs(
    plan: Plan,
    sha256: str,
    numbers: range,
    around: Surroundings,
    restarts: BrokerRestarts | None,
    options: _ApplyOptions,
) -> list[PlanRun]:
    """A run for each of the steps *numbers*, from 0; the plan stays in force between them."""
    return [
        PlanRun(
            plan=plan,
            sha256=sha256,
            number=number,
            around=around,
            tolerance=options.tolerance,
            restarts=restarts,
            follows=number > numbers[0],
            precedes=number < numbers[-1],
        )
        for number in numbers
    ]


def _repair(settings: Settings, plan: Plan, output: Path | None, options: _ApplyOptions) -> None:
    """Plan what is left of *plan* for the cluster as it is."""
    source = source_of_log(settings, before=options.intervals)
    made = repaired(plan, _number(plan, options.step), source, tolerance=options.tolerance)
    tell_plan(made, output, options.conf, as_json=options.as_json)


def _propose(settings: Settings, read: _ReadPlan, key: Path | None, made: Choice) -> None:
    """Propose the plan that was *read*, unless that was done before."""
    with closing(election_system(settings).proposals()) as proposals:
        if proposals.read(read.checked.subject.hash) is None:
            signer = signer_with(settings, key, made.by)
            propose_plan(proposals, signer, read.content, now_ms=made.at_ms, reason=made.reason, checked=read.checked)


def _apply_proposal(
    settings: Settings, key: str, made: Choice, options: _ApplyOptions, read: _ReadPlan | None = None
) -> None:
    """Carry out the proposal *key*.  *read*: the plan's file, not verified again where it is what is stored."""
    with long_work("waiting for the log and the election"):
        require(settings, Part.LOG, Part.ELECTION)
    system = election_system(settings)
    with closing(system.proposals()) as proposals, closing(system.controls()) as controls:
        stored = proposal_with(proposals, key)
        raw = proposals.content(stored.proposal.hash)
        content = read.checked if read is not None and read.content == raw else verified_content(stored.proposal, raw)
        if content.plan is None:
            raise ProposalRefusedError(f"proposal {stored.proposal.hash[:12]} is no plan: there is nothing to apply")
        refuse_other_cluster(content.plan, settings, options.conf)
        plan, sha256 = content.plan, stored.proposal.hash
        first = step_to_do(stored.record.progress, len(plan.steps), options.step) - 1
        around = _surroundings(settings, options.conf, controls, options.intervals, made, quiet=options.as_json)
        hold = _hold(settings, proposals, content.subject, around)
        around = replace(around, paused_until=hold.paused_until, report=hold.report)
        restarts = broker_restarts(options.hook, settings, plan, sha256)
        runs = _runs(plan, sha256, options.numbers(first, plan), around, restarts, options)
        _refuse_what_holds_it_back(settings, options.conf, controls)
        done = [_held_run(run, hold) for run in runs]
        _tell_end(runs[-1], together(done), as_json=options.as_json)


def _hold(settings: Settings, proposals: ProposalStore, subject: ProposalSubject, around: Surroundings) -> ProposalHold:
    return ProposalHold(
        store=proposals,
        key=subject.hash,
        subject=subject,
        policy=settings.approvals,
        cluster=settings.cluster.name,
        now_ms=now_ms,
        hold_ms=HOLD_INTERVALS * settings.intervals.period_ms + HOLD_MS,
        holder=around.holder,
        by=around.by,
        resume_command=around.command("proposals", "resume", subject.hash[:12]),
    )


def _held_run(run: PlanRun, hold: ProposalHold) -> Applied:
    """Carry *run* out, and store what becomes of it."""
    hold.begin(run.number + 1, len(run.plan.steps))
    try:
        with signals.interrupts(exit_code=signals.INTERRUPTED):
            done = run.run()
    except PlanHaltedError as error:
        raise PlanHaltedError(hold.fail(str(error))) from error
    except BaseException as error:  # the log is away, a broker is not back, or a person ends it: another one goes on
        with suppress(TrimtabError):
            hold.release(str(error) if isinstance(error, RestartFailedError) else "")
        raise
    note = f"{counted(len(done.left_behind), 'bundle')} left on a broker that should be empty"
    hold.end(note if done.left_behind else "")
    return done


def _refuse_pairs(output: Path | None, unused: Path | None, *, repair: bool, check: bool, hook: bool) -> None:
    if unused is not None:
        raise typer.BadParameter("it signs a plan's file that is proposed; here nothing is signed", param_hint="--key")
    if hook and (repair or check):
        raise typer.BadParameter("it goes with neither --check nor --repair", param_hint="--hook")
    if repair != (output is not None):
        raise typer.BadParameter("--repair and --output go together", param_hint="--repair")
    if repair and check:
        raise typer.BadParameter("--repair makes a plan and --check only checks one: give one of them")
    if output is not None:
        require_writable(output, "--output")


def _read(file: Path, approved: str) -> _ReadPlan:
    if not re.fullmatch(rf"[0-9a-f]{{{_SHORTEST_HASH},64}}", approved):
        why = f"give at least {_SHORTEST_HASH} of the 64 digits (0-9, a-f) that `trimtab plan` printed"
        raise typer.BadParameter(why, param_hint="--hash")
    content = read_plan_bytes(file)
    checked = plan_content(content, str(file))
    if checked.plan is None or not checked.subject.hash.startswith(approved):
        raise PlanRefusedError(
            f"{file} is another plan than the one that was approved: its hash is {checked.subject.hash}"
        )
    return _ReadPlan(content, checked, checked.plan)


def _number(plan: Plan, step: int | None) -> int:
    """The step to carry out, from 0."""
    if not plan.steps:
        raise PlanRefusedError("the plan has no moves: there is nothing to carry out")
    if step is None and len(plan.steps) > 1:
        raise typer.BadParameter(f"the plan has {len(plan.steps)} steps: choose one", param_hint="--step")
    if step is not None and step > len(plan.steps):
        raise typer.BadParameter(f"the plan has {counted(len(plan.steps), 'step')}", param_hint="--step")
    return 0 if step is None else step - 1


def _surroundings(
    settings: Settings, conf: Path, store: ControlStore, intervals: int, made: Choice, *, quiet: bool
) -> Surroundings:
    out = console()

    def source() -> PlanSource:
        return source_of_log(settings, before=intervals)

    def say(text: str) -> None:
        if not quiet:
            print_line(out, f"{time.strftime('%H:%M:%SZ', time.gmtime())} {text}")

    return Surroundings(
        change=lambda how: change(store, how),
        source=source,
        progress=lambda plan, since: plan_progress(settings, plan, since),
        now_ms=now_ms,
        sleep=time.sleep,
        say=say,
        command=partial(command_line, conf=conf),
        by=made.by,
        reason=made.reason,
        holder=str(uuid.uuid4()),
    )


def _tell_check(run: PlanRun, *, as_json: bool) -> None:
    check = run.check()
    moves, done = sum(len(wave) for wave in check.waves), len(check.done)
    answer = ApplyAnswer(
        sha256=run.sha256, step=run.number + 1, moves=moves + done, done=done, notes=[], left=[], restarted=[]
    )
    waves = counted(len(check.waves), "wave")
    text = f"The cluster is as the plan says: {counted(done, 'move')} done, {moves} in {waves} to be carried out."
    show(answer, lambda out: print_line(out, text), as_json=as_json)


def _refuse_what_holds_it_back(settings: Settings, conf: Path, store: ControlStore) -> None:
    """TrimtabError where the controllers would issue nothing."""
    controls, now = store.read()[0], now_ms()
    mode = controls.mode_in_force(settings.decisions.mode)
    if not controls.pauses_at(now) and controls.is_paused(now, paused=settings.decisions.paused):
        resume = command_line("resume", conf=conf)
        raise TrimtabError(f"decisions.paused is set, so nothing is issued: run `{resume}`")
    if mode not in MOVING_MODES:
        active = command_line("mode", "active", conf=conf)
        raise TrimtabError(f"the mode is {mode}, in which nothing moves: run `{active}`")
    if election_system(settings).leader() is None:
        run_it = command_line("run", conf=conf)
        raise TrimtabError(f"no controller runs, and the controllers issue the commands: start `{run_it}`")


def _tell_end(run: PlanRun, done: Applied, *, as_json: bool) -> None:
    _tell(run, done, as_json=as_json)
    if done.left_behind:
        raise typer.Exit(_LEFT_BEHIND)


def _tell(run: PlanRun, done: Applied, *, as_json: bool) -> None:
    answer = ApplyAnswer(
        sha256=run.sha256,
        step=run.number + 1,
        moves=done.moves,
        done=done.done,
        notes=list(done.notes),
        left=list(done.left_behind),
        restarted=list(done.restarted),
    )
    show(answer, partial(_print, done=done), as_json=as_json)


def _print(out: Console, done: Applied) -> None:
    restarted = f"; restarted {', '.join(done.restarted)}" if done.restarted else ""
    print_line(out, f"Done: {done.done} of {counted(done.moves, 'move')}{restarted}.")
    for bundle in done.left_behind[:10]:
        failures.say(f"{bundle} is still on a broker that should be empty: --repair plans its move")
