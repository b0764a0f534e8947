"""``trimtab pause``, ``resume``, ``mode``, ``stop-all`` ...: controls of all the cluster's controllers."""

import getpass
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from controller.adapters.approvals.control_changes import (
    enact_approved,
    needs_approval,
    propose_include,
    propose_mode,
    propose_release,
    propose_resume,
)
from controller.adapters.election import changes
from controller.adapters.election.controls import ControlStore
from controller.adapters.outages import Part
from controller.cli.shared import failures
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import length_ms, now_ms
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import require
from controller.cli.shared.signing import KeyOption, refuse_unused_key, signer_with
from controller.doctor.before_acting import require_broker_balancing_off
from controller.log.elections import election_system
from controller.log.fencing import fence
from controller.model.controls import MAX_HISTORY, MOVING_MODES, Choice, ControlChange, OperatorControls, Pause
from controller.model.errors import TrimtabError
from controller.model.name_patterns import is_pattern
from controller.model.proposals import StoredProposal
from controller.settings.pulsar_names import namespace_or_bundle
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.status import ControlChangeAnswer, ControlsAnswer, PauseAnswer
from controller.wire.controls_text import change_text, pause_text, pauses_text
from controller.wire.readable import counted, utc

ReasonOption = Annotated[str, typer.Option(help="Why; shown by `trimtab controls`.")]
By = Annotated[
    str,
    typer.Option(help="Your name; shown by `trimtab controls`.", show_default="your user name"),
]
_AsJson = Annotated[bool, json_option("answer.controls")]


class Mode(StrEnum):
    """What `trimtab mode` sets."""

    ACTIVE = "active"
    APPROVE = "approve"
    DRY_RUN = "dry_run"
    OBSERVE = "observe"
    #: Use decisions.mode: remove the operator's choice.
    SETTINGS = "settings"


def pause(
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    ends_after: Annotated[
        str, typer.Option("--for", help="End by itself after this time: 90m, 2h, 1d.", show_default="until `resume`")
    ] = "",
    as_json: _AsJson = False,
) -> None:
    """Issue no more commands from the next interval on, until `trimtab resume`.  Holds over restarts and takeovers.

    Pauses of several people add up: commands are issued again once all of them have ended.
    """
    settings, made = read_settings(conf), choice_of("", reason, by)
    until_ms = made.at_ms + length_ms(ends_after, of="--for") if ends_after else 0
    added = Pause(by=made.by, reason=made.reason, at_ms=made.at_ms, until_ms=until_ms)
    require(settings, Part.ELECTION)
    how = changes.paused(made, until_ms)
    with_store(
        settings, lambda store: _tell_paused(settings, conf, change(store, how, may_replace=True), added, as_json)
    )


def _tell_paused(settings: Settings, conf: Path, now: OperatorControls, added: Pause, as_json: bool) -> None:
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=True).as_line())
        return
    resumed, stop = (command_line(name, conf=conf) for name in ("resume", "stop-all"))
    until = f"{utc(added.until_ms)}, or `{resumed}`" if added.until_ms else f"`{resumed}`"
    _say(f"Paused {settings.cluster.name}: no commands from the next interval on, until {until}.")
    others = [each for each in now.pauses_at(added.at_ms) if each != added]
    if others:
        _say(f"Also paused by {pauses_text(others)}. Commands are issued again once all pauses have ended.")
    _say(f"Executors still execute the commands that were issued before; `{stop}` stops those, too.")


def resume(
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    of: Annotated[
        list[str] | None, typer.Option("--of", metavar="NAME", help="End this person's pauses.", show_default="yours")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="End the pauses of everybody.")] = False,
    key: KeyOption = None,
    as_json: _AsJson = False,
) -> None:
    """End your pauses, and reset the circuit breaker if it has tripped.

    Pauses of others remain until they resume, or until you name them with --of or give --all.  If there is no pause
    at all, decisions.paused of the settings no longer applies.
    """
    if of and every:
        raise typer.BadParameter("give names, or --all", param_hint="--of")
    settings, made = read_settings(conf), choice_of("", reason, by)
    refuse_unused_key(settings, key)
    require(settings, Part.ELECTION)
    how = changes.resumed(made, None if every else of or [made.by])
    if settings.approvals.demanded:
        # Tried before it is proposed: a name without a pause is refused.
        with closing(election_system(settings).controls()) as store:
            before = store.read()[0]
        ending = tuple(changes.ended_pauses(before, how(before), made.at_ms))
        propose = partial(propose_resume, pauses=ending)
        _propose(settings, conf, key, made, propose, as_json=as_json)
        return

    def resumed(store: ControlStore) -> None:
        before, after = changes.change_controls(store, how, say=failures.say)
        _tell_resumed(settings, after, changes.ended_pauses(before, after, made.at_ms), as_json=as_json)

    with_store(settings, resumed)


def _tell_resumed(settings: Settings, now: OperatorControls, ended: Sequence[Pause], *, as_json: bool) -> None:
    name, standing = settings.cluster.name, now.pauses_at(now_ms())
    if as_json:
        ended_pauses, remaining = ([PauseAnswer.from_object(each) for each in pauses] for pauses in (ended, standing))
        typer.echo(ControlsAnswer(cluster=name, paused=bool(standing), ended=ended_pauses, pauses=remaining).as_line())
        return
    for each in ended:
        _say(f"Ended the pause of {pause_text(each)} (since {utc(each.at_ms)}).")
    if standing:
        _say(f"Still paused: by {pauses_text(standing)}. No commands until that has ended, too.")
    else:
        _say(f"Resumed {name}: commands may be issued from the next interval on.")


def mode(
    value: Annotated[Mode, typer.Argument(help="settings: use decisions.mode of the settings.")],
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    key: KeyOption = None,
    as_json: _AsJson = False,
) -> None:
    """Set the mode of every controller of the cluster.  It overrides decisions.mode until another mode is set.

    Where [approvals] demands signatures, a mode that moves more is proposed with --key, and set once others have
    approved it (`trimtab proposals approve`).
    """
    settings = read_settings(conf)
    refuse_unused_key(settings, key)
    in_force = settings.decisions.mode if value is Mode.SETTINGS else value.value
    require(settings, Part.ELECTION, *([Part.BROKERS] if in_force in MOVING_MODES else []))
    require_broker_balancing_off(settings, mode=in_force)
    made = choice_of(value.value, reason, by)
    with closing(election_system(settings).controls()) as store:
        if needs_approval(settings.approvals, store.read()[0], in_force, settings.decisions.mode):
            _propose(settings, conf, key, made, partial(propose_mode, mode=in_force), as_json=as_json)
            return
        change(store, changes.mode_set(made))
    text = f"The mode of {settings.cluster.name} is {in_force} from the next interval on."
    show(ControlsAnswer(cluster=settings.cluster.name, mode=in_force), lambda _: _say(text), as_json=as_json)


def release(
    brokers: Annotated[
        list[str] | None, typer.Argument(metavar="BROKER...", help="Drained brokers, by name.", show_default=False)
    ] = None,
    release_all: Annotated[bool, typer.Option("--all", help="Release every drained broker.")] = False,
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    key: KeyOption = None,
    as_json: _AsJson = False,
) -> None:
    """Let drained brokers get bundles again, from the next interval on.

    Where [approvals] demands signatures, that is proposed with --key first.
    """
    if release_all == bool(brokers):
        raise typer.BadParameter("name drained brokers, or give --all", param_hint="BROKER")
    settings, made = read_settings(conf), choice_of("", reason, by)
    refuse_unused_key(settings, key)
    require(settings, Part.ELECTION)
    how = changes.released(made, None if release_all else brokers)
    if settings.approvals.demanded:
        with closing(election_system(settings).controls()) as store:
            before = store.read()[0]
        remaining = {each.broker for each in how(before).drained}
        names = tuple(each.broker for each in before.drained if each.broker not in remaining)
        if not names:
            _tell_drained(settings, before, as_json=as_json)
            return
        _propose(settings, conf, key, made, partial(propose_release, brokers=names), as_json=as_json)
        return
    with_store(settings, lambda store: _tell_drained(settings, change(store, how), as_json=as_json))


def exclude(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Bundles, or namespaces with all of theirs; no patterns.")
    ],
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    as_json: _AsJson = False,
) -> None:
    """Keep bundles where they are and whole, from the next interval on, until `trimtab include`.

    A bundle that somebody else splits or merges is excluded no more: exclude its namespace instead.
    """
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, Part.ELECTION)
    if patterns := [name for name in names if is_pattern(name)]:
        raise typer.BadParameter(f"{patterns[0]!r} is a pattern: name each namespace", param_hint="NAME")
    try:
        how = changes.excluded(made, list(map(namespace_or_bundle, names)))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    with_store(settings, lambda store: _tell_excluded(settings, change(store, how), as_json=as_json))


def include(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Bundles and namespaces that are excluded.")],
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "",
    by: By = "",
    key: KeyOption = None,
    as_json: _AsJson = False,
) -> None:
    """Let what is excluded be moved and split again, from the next interval on.

    Where [approvals] demands signatures, that is proposed with --key first.
    """
    settings, made = read_settings(conf), choice_of("", reason, by)
    refuse_unused_key(settings, key)
    require(settings, Part.ELECTION)
    names = list(map(_as_excluded, names))
    how = changes.included(made, names)
    if settings.approvals.demanded:
        with closing(election_system(settings).controls()) as store:
            how(store.read()[0])
        proposed = tuple(sorted({*names}))
        _propose(settings, conf, key, made, partial(propose_include, names=proposed), as_json=as_json)
        return
    with_store(settings, lambda store: _tell_excluded(settings, change(store, how), as_json=as_json))


def _as_excluded(name: str) -> str:
    """*name* as `trimtab exclude` stores it; what another process stored may be no name, and is included, too."""
    try:
        return namespace_or_bundle(name)
    except ValueError:
        return name


def _tell_excluded(settings: Settings, controls: OperatorControls, *, as_json: bool) -> None:
    excluded = [each.name for each in controls.excluded]
    text = f"Excluded by persons in {settings.cluster.name}: {', '.join(excluded) or 'nothing'}."
    show(ControlsAnswer(cluster=settings.cluster.name, excluded=excluded), lambda _: _say(text), as_json=as_json)


def _tell_drained(settings: Settings, controls: OperatorControls, *, as_json: bool) -> None:
    drained = [each.broker for each in controls.drained]
    text = f"Drained brokers of {settings.cluster.name}: {', '.join(drained) or 'none'}."
    show(ControlsAnswer(cluster=settings.cluster.name, drained=drained), lambda _: _say(text), as_json=as_json)


def _propose(
    settings: Settings,
    conf: Path,
    key: Path | None,
    made: Choice,
    propose: Callable[..., StoredProposal],
    *,
    as_json: bool,
) -> None:
    """Propose a change of the controls by *propose*, and make it where it needs no further approval."""
    signer, system = signer_with(settings, key, made.by), election_system(settings)
    with closing(system.proposals()) as proposals, closing(system.controls()) as controls:
        stored = propose(proposals, signer, now_ms=made.at_ms, reason=made.reason)
        name, proposal = stored.proposal.title, stored.proposal.hash
        if not settings.approvals.required:
            policy, cluster = settings.approvals, settings.cluster.name
            enact_approved(proposals, controls, proposal, policy, cluster, now_ms=made.at_ms)
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, proposal=proposal).as_line())
    elif settings.approvals.required:
        approve = command_line("proposals", "approve", proposal, conf=conf)
        _say(
            f"Proposed: {name}. It is in force once {counted(settings.approvals.required, 'other person')} approved it:"
        )
        _say(f"{approve} --key FILE")
    else:
        _say(f"In force from the next interval on: {name}.")


def stop_all(
    conf: Conf = DEFAULT_CONF, reason: ReasonOption = "stop-all", by: By = "", as_json: _AsJson = False
) -> None:
    """Pause, and make executors refuse every command that they have not started.  No controller needs to run."""
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, useful=(Part.ELECTION, Part.LOG))

    def stop(store: ControlStore) -> None:
        failure = ""
        try:
            change(store, changes.stopped(made), may_replace=True)
            if not as_json:
                _say(f"Paused {settings.cluster.name}: no commands until `{command_line('resume', conf=conf)}`.")
        except TrimtabError as error:
            # Still stop the commands in flight.
            failure = f"the pause could not be stored, so a running controller still issues new commands: {error}"
        require(settings, Part.LOG)
        epoch = fence(settings, store, may_be_unknown=bool(failure))
        if as_json:
            typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=not failure, epoch=epoch).as_line())
        else:
            _say(f"Epoch {epoch} starts: executors answer 'fenced' to older commands that they have not started.")
            _say("A running leader loses its leadership, restarts, and reads the pause.")
        if failure:
            raise TrimtabError(failure)

    with_store(settings, stop)


def accept_loss(
    conf: Conf = DEFAULT_CONF, reason: ReasonOption = "journal entries lost", by: By = "", as_json: _AsJson = False
) -> None:
    """Continue without the journal's newest entries, which are lost, as `trimtab run` reported.  Pauses until `resume`.

    Budgets, moves under way and a tripped breaker that only these entries held are forgotten: restore the journal
    instead if there is a copy.  A later loss is refused again.
    """
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, Part.ELECTION)

    with_store(settings, lambda store: change(store, changes.loss_accepted(made), may_replace=True))
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=True).as_line())
        return
    resume_line = command_line("resume", conf=conf)
    _say(f"Accepted: {settings.cluster.name} goes on with the journal that it has. Start `trimtab run` again.")
    _say(f"Paused: no commands until `{resume_line}`. Look at `{command_line('status', conf=conf)}` first.")


def controls(
    limit: Annotated[int, typer.Option(min=1, max=MAX_HISTORY, help="Print at most this many changes.")] = 20,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.control_change", each="change")] = False,
) -> None:
    """Print who changed the controls, when, what and why, the newest first; the last 100 changes are stored.

    Attempts that the page refused are among them; the last 20 of these are stored.
    """
    settings = read_settings(conf)
    require(settings, Part.ELECTION)
    with_store(settings, lambda store: _print_history(store.read()[0].events[::-1][:limit], as_json=as_json))


def _print_history(changes: Sequence[ControlChange], *, as_json: bool) -> None:
    show_changes(list(map(ControlChangeAnswer.from_object, changes)), as_json=as_json)


def show_changes(changes: Sequence[ControlChangeAnswer], *, as_json: bool) -> None:
    """Print *changes*, the newest first."""
    if not changes and not as_json:
        _say("Nobody has changed the controls yet.")
    show(changes, partial(_print_changes, changes=changes), as_json=as_json)


def _print_changes(out: Console, changes: Sequence[ControlChangeAnswer]) -> None:
    for each in changes:
        print_line(out, f"{utc(each.at_ms)}  {change_text(each)}", rest="    ")


def change(
    store: ControlStore, how: Callable[[OperatorControls], OperatorControls], *, may_replace: bool = False
) -> OperatorControls:
    """``change_controls`` for a person at the command line; returns the controls after the change."""
    return changes.change_controls(store, how, may_replace=may_replace, say=failures.say)[1]


def with_store(settings: Settings, use: Callable[[ControlStore], object]) -> None:
    """Call *use* with the cluster's control store, then close the store."""
    store = election_system(settings).controls()
    try:
        use(store)
    finally:
        store.close()


def choice_of(value: str, reason: str, by: str) -> Choice:
    """*value* as chosen now, with who chose it and why."""
    return changes.choice_by(by or user(), reason, now_ms(), value)


def _say(text: str) -> None:
    print_line(console(), text)


def user() -> str:
    """Who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # as in a container: the user has a number, and no name
        return f"user {os.getuid()}"
