"""``trimtab pause``, ``resume``, ``mode``, ``stop-all`` ...: controls of all the cluster's controllers."""

import getpass
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from controller.adapters.election.controls import ControlStore
from controller.adapters.factory import election_system
from controller.adapters.outages import Part
from controller.cli.shared import failures
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import length_ms, now_ms
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import require
from controller.doctor.before_acting import require_broker_balancing_off
from controller.log.factory import log_system
from controller.model.controls import MAX_HISTORY, Choice, ControlChange, OperatorControls, Pause
from controller.model.errors import ControlsCorruptError, LeadershipLostError, TrimtabError
from controller.model.leadership import newer_epoch
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.status import ControlChangeAnswer, ControlsAnswer, PauseAnswer
from controller.wire.base import printable
from controller.wire.controls import MAX_NAME, MAX_REASON
from controller.wire.controls_text import change_text, pause_text, pauses_text
from controller.wire.readable import utc

_TRIES: Final = 5

ReasonOption = Annotated[str, typer.Option(help="Why; shown by `trimtab controls`.")]
By = Annotated[
    str,
    typer.Option(help="Your name; shown by `trimtab controls`.", show_default="your user name"),
]
_AsJson = Annotated[bool, json_option("answer.controls")]


class Mode(StrEnum):
    """What `trimtab mode` sets."""

    ACTIVE = "active"
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
    detail = f"until {utc(until_ms)}" if until_ms else ""

    def paused(now: OperatorControls) -> OperatorControls:
        return now.with_pause(added).with_change(_change("pause", made, detail))

    require(settings, Part.ELECTION)
    with_store(
        settings, lambda store: _tell_paused(settings, conf, change(store, paused, may_replace=True), added, as_json)
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
    as_json: _AsJson = False,
) -> None:
    """End your pauses, and reset the circuit breaker if it has tripped.

    Pauses of others remain until they resume, or until you name them with --of or give --all.  If there is no pause
    at all, decisions.paused of the settings no longer applies.
    """
    if of and every:
        raise typer.BadParameter("give names, or --all", param_hint="--of")
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, Part.ELECTION)
    ended = list[Pause]()

    def resumed(now: OperatorControls) -> OperatorControls:
        standing = now.pauses_at(made.at_ms)
        ended[:] = _ending(standing, conf, None if every else of or [made.by])
        detail = f"ends the pause of {pauses_text(ended)}"[:MAX_REASON] if ended else ""
        return replace(
            now,
            pauses=tuple(each for each in standing if each not in ended),
            resumed_ms=max(made.at_ms, now.resumed_ms + 1),
        ).with_change(_change("resume", made, detail))

    with_store(settings, lambda store: _tell_resumed(settings, change(store, resumed), ended, as_json=as_json))


def _ending(standing: Sequence[Pause], conf: Path, names: Sequence[str] | None) -> list[Pause]:
    """The pauses of *standing* to end: those of *names*, or all; TrimtabError if a name has none."""
    if names is None or not standing:
        return list(standing)
    unknown = sorted(set(names) - {each.by for each in standing})
    if unknown:
        of = command_line("resume", "--of", standing[0].by, conf=conf)
        raise TrimtabError(
            f"there is no pause of {', '.join(unknown)}, so nothing was changed; paused by {pauses_text(standing)}:"
            f" end that with `{of}`, or every pause with `{command_line('resume', '--all', conf=conf)}`"
        )
    return [each for each in standing if each.by in names]


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
    as_json: _AsJson = False,
) -> None:
    """Set the mode of every controller of the cluster.  It overrides decisions.mode until another mode is set."""
    settings = read_settings(conf)
    choice = None if value is Mode.SETTINGS else choice_of(value.value, reason, by)
    in_force = settings.decisions.mode if choice is None else choice.value
    require(settings, Part.ELECTION, *([Part.BROKERS] if in_force == "active" else []))
    require_broker_balancing_off(settings, mode=in_force)
    made = choice_of("", reason, by)

    def changed(now: OperatorControls) -> OperatorControls:
        return replace(now, mode=choice).with_change(_change("mode", made, value.value))

    with_store(settings, lambda store: change(store, changed))
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
    as_json: _AsJson = False,
) -> None:
    """Let drained brokers get bundles again, from the next interval on."""
    if release_all == bool(brokers):
        raise typer.BadParameter("name drained brokers, or give --all", param_hint="BROKER")
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, Part.ELECTION)
    named = set(brokers or ())

    def released(now: OperatorControls) -> OperatorControls:
        unknown = named - {each.broker for each in now.drained}
        if unknown:
            have = ", ".join(each.broker for each in now.drained) or "none"
            raise TrimtabError(f"{', '.join(sorted(unknown))} is not drained; drained are: {have}")
        remaining = tuple(each for each in now.drained if not release_all and each.broker not in named)
        released = ", ".join(each.broker for each in now.drained if each not in remaining)[:MAX_REASON]
        return replace(now, drained=remaining).with_change(_change("release", made, released))

    with_store(settings, lambda store: _tell_drained(settings, change(store, released), as_json=as_json))


def _tell_drained(settings: Settings, controls: OperatorControls, *, as_json: bool) -> None:
    drained = [each.broker for each in controls.drained]
    text = f"Drained brokers of {settings.cluster.name}: {', '.join(drained) or 'none'}."
    show(ControlsAnswer(cluster=settings.cluster.name, drained=drained), lambda _: _say(text), as_json=as_json)


def stop_all(
    conf: Conf = DEFAULT_CONF, reason: ReasonOption = "stop-all", by: By = "", as_json: _AsJson = False
) -> None:
    """Pause, and make executors refuse every command that they have not started.  No controller needs to run."""
    settings, made = read_settings(conf), choice_of("", reason, by)
    require(settings, useful=(Part.ELECTION, Part.LOG))

    def stopped(now: OperatorControls) -> OperatorControls:
        paused = now.with_pause(_pause(made)).with_change(_change("stop-all", made))
        return replace(paused, orders=None, stopped_ms=max(made.at_ms, now.stopped_ms + 1))

    def stop(store: ControlStore) -> None:
        failure = ""
        try:
            change(store, stopped, may_replace=True)
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

    def accepted(now: OperatorControls) -> OperatorControls:
        paused = now.with_pause(_pause(made)).with_change(_change("accept-loss", made))
        return replace(paused, loss_accepted_ms=max(made.at_ms, now.loss_accepted_ms))

    with_store(settings, lambda store: change(store, accepted, may_replace=True))
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
    """Print who changed the controls, when, what and why, the newest first; the last 100 changes are stored."""
    settings = read_settings(conf)
    require(settings, Part.ELECTION)
    with_store(settings, lambda store: _print_history(store.read()[0].history[::-1][:limit], as_json=as_json))


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
    """Replace the controls by *how* of them, and return them; again if they changed meanwhile.

    *may_replace*: controls that cannot be read are replaced, too.  Only what pauses may ask for that: with others
    commands would be issued again, to drained brokers, too.  Raises TrimtabError.
    """
    for _ in range(_TRIES):
        try:
            now, version = store.read()
        except ControlsCorruptError as error:
            if not may_replace:
                raise
            failures.say(
                f"{error}; they are replaced: set a mode other than the settings' again, and drain brokers again"
            )
            now, version = OperatorControls(), store.version()
        changed = how(now)
        if store.write(changed, version):
            return changed
    raise TrimtabError(f"the controls were not changed: others changed them during each of {_TRIES} tries; try again")


def fence(settings: Settings, store: ControlStore, *, may_be_unknown: bool = False) -> int:
    """Start a new epoch in the journal and for all readers of commands; this ends the running leadership.

    What the journal holds does not matter: it stops a controller that cannot read its journal, too.
    """
    for _ in range(_TRIES):
        journal = log_system(settings).journal()
        written = journal.fence()
        try:
            stored = store.epoch()
        except TrimtabError:
            if not may_be_unknown:
                raise
            stored = 0
        epoch = newer_epoch(stored, written) + 1
        try:
            journal.begin_epoch(epoch)
        except LeadershipLostError:
            continue  # a controller has just begun to lead: fence it, too
        if not may_be_unknown:
            store.raise_epoch(epoch)
        return epoch
    raise TrimtabError(f"no epoch was started: a controller began to lead during each of {_TRIES} tries; try again")


def with_store(settings: Settings, use: Callable[[ControlStore], object]) -> None:
    """Call *use* with the cluster's control store, then close the store."""
    store = election_system(settings).controls()
    try:
        use(store)
    finally:
        store.close()


def choice_of(value: str, reason: str, by: str) -> Choice:
    """*value* as chosen now, with who chose it and why."""
    # Whatever somebody pastes as a reason in an emergency, the command has to work.
    return Choice(value=value, reason=printable(reason)[:MAX_REASON], by=_name_of(by), at_ms=now_ms())


def _pause(made: Choice) -> Pause:
    """A pause that does not end by itself."""
    return Pause(by=made.by, reason=made.reason, at_ms=made.at_ms)


def _change(action: str, made: Choice, detail: str = "") -> ControlChange:
    return ControlChange(at_ms=made.at_ms, by=made.by, action=action, detail=printable(detail), reason=made.reason)


def _say(text: str) -> None:
    print_line(console(), text)


def _name_of(by: str) -> str:
    """*by*, or who runs this command, as the controls keep it."""
    return printable(by or user())[:MAX_NAME]


def user() -> str:
    """Who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # as in a container: the user has a number, and no name
        return f"user {os.getuid()}"
