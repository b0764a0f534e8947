"""``trimtab pause``, ``resume``, ``mode``, ``stop-all``, ``accept-loss``: controls of all the cluster's controllers."""

import getpass
import os
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Final

import typer

from controller.adapters.opened import election_system, log_system
from controller.adapters.outages import Part
from controller.cli.shared import failures
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import require
from controller.doctor.before_acting import require_broker_balancing_off
from controller.model.controls import PAUSED, RUNNING, Choice, OperatorControls
from controller.model.errors import ControlsCorruptError, LeadershipLostError, TrimtabError
from controller.ports.controls import ControlStore
from controller.ports.leadership import newer_epoch
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.status import ControlsAnswer
from controller.wire.base import printable
from controller.wire.controls import MAX_NAME, MAX_REASON

_TRIES: Final = 5

_Reason = Annotated[str, typer.Option(help="Why; shown by `trimtab status` and kept in the journal.")]
_By = Annotated[
    str,
    typer.Option(
        help="Who does this; shown by `trimtab status` and kept in the journal.", show_default="your user name"
    ),
]
_AsJson = Annotated[bool, json_option("answer.controls")]


class Mode(StrEnum):
    """What `trimtab mode` sets."""

    ACTIVE = "active"
    DRY_RUN = "dry_run"
    OBSERVE = "observe"
    #: Use decisions.mode: remove the operator's choice.
    SETTINGS = "settings"


def pause(conf: Conf = DEFAULT_CONF, reason: _Reason = "", by: _By = "", as_json: _AsJson = False) -> None:
    """Issue no more commands from the next interval on, until `trimtab resume`.  Holds over restarts and takeovers."""
    settings = read_settings(conf)
    choice = _choice(PAUSED, reason, by)
    require(settings, Part.ELECTION)
    with_store(settings, lambda store: change(store, lambda now: replace(now, pause=choice), may_replace=True))
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=True).as_line())
        return
    resumed, stop = (command_line(name, conf=conf) for name in ("resume", "stop-all"))
    _say(f"Paused {settings.cluster.name}: no commands from the next interval on, until `{resumed}`.")
    _say(f"Executors still execute the commands that were issued before; `{stop}` stops those, too.")


def resume(conf: Conf = DEFAULT_CONF, reason: _Reason = "", by: _By = "", as_json: _AsJson = False) -> None:
    """Issue commands again, and reset the circuit breaker if it has tripped."""
    settings = read_settings(conf)
    choice = _choice(RUNNING, reason, by)

    require(settings, Part.ELECTION)

    def resumed(now: OperatorControls) -> OperatorControls:
        return replace(now, pause=choice, resumed_ms=max(choice.at_ms, now.resumed_ms + 1))

    with_store(settings, lambda store: change(store, resumed))
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=False).as_line())
    else:
        _say(f"Resumed {settings.cluster.name}: commands may be issued from the next interval on.")


def mode(
    value: Annotated[Mode, typer.Argument(help="settings: use decisions.mode of the settings.")],
    conf: Conf = DEFAULT_CONF,
    reason: _Reason = "",
    by: _By = "",
    as_json: _AsJson = False,
) -> None:
    """Set the mode of every controller of the cluster.  It overrides decisions.mode until another mode is set."""
    settings = read_settings(conf)
    choice = None if value is Mode.SETTINGS else _choice(value.value, reason, by)
    in_force = settings.decisions.mode if choice is None else choice.value
    require(settings, Part.ELECTION, *([Part.BROKERS] if in_force == "active" else []))
    require_broker_balancing_off(settings, mode=in_force)
    with_store(settings, lambda store: change(store, lambda now: replace(now, mode=choice)))
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, mode=in_force).as_line())
    else:
        _say(f"The mode of {settings.cluster.name} is {in_force} from the next interval on.")


def release(
    brokers: Annotated[
        list[str] | None, typer.Argument(metavar="BROKER...", help="Drained brokers, by name.", show_default=False)
    ] = None,
    release_all: Annotated[bool, typer.Option("--all", help="Release every drained broker.")] = False,
    conf: Conf = DEFAULT_CONF,
    as_json: _AsJson = False,
) -> None:
    """Let drained brokers get bundles again, from the next interval on."""
    if release_all == bool(brokers):
        raise typer.BadParameter("name drained brokers, or give --all", param_hint="BROKER")
    settings = read_settings(conf)
    require(settings, Part.ELECTION)
    named = set(brokers or ())

    def released(now: OperatorControls) -> OperatorControls:
        unknown = named - {each.broker for each in now.drained}
        if unknown:
            have = ", ".join(each.broker for each in now.drained) or "none"
            raise TrimtabError(f"{', '.join(sorted(unknown))} is not drained; drained are: {have}")
        return replace(now, drained=tuple(each for each in now.drained if not release_all and each.broker not in named))

    with_store(settings, lambda store: _tell_drained(settings, change(store, released), as_json=as_json))


def _tell_drained(settings: Settings, controls: OperatorControls, *, as_json: bool) -> None:
    drained = [each.broker for each in controls.drained]
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, drained=drained).as_line())
    else:
        _say(f"Drained brokers of {settings.cluster.name}: {', '.join(drained) or 'none'}.")


def stop_all(conf: Conf = DEFAULT_CONF, reason: _Reason = "stop-all", by: _By = "", as_json: _AsJson = False) -> None:
    """Pause, and make executors refuse every command that they have not started.  No controller needs to run."""
    settings = read_settings(conf)
    choice = _choice(PAUSED, reason, by)

    require(settings, useful=(Part.ELECTION, Part.LOG))

    def stopped(now: OperatorControls) -> OperatorControls:
        return replace(now, pause=choice, orders=None, stopped_ms=max(choice.at_ms, now.stopped_ms + 1))

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
    conf: Conf = DEFAULT_CONF, reason: _Reason = "journal entries lost", by: _By = "", as_json: _AsJson = False
) -> None:
    """Go on without the journal's newest entries, which are lost, as `trimtab run` said.  Pauses until `resume`.

    Budgets, moves under way and a tripped breaker that only these entries held are forgotten: restore the journal
    instead where there is a copy.  A later loss is refused again.
    """
    settings = read_settings(conf)
    choice = _choice(PAUSED, reason, by)
    require(settings, Part.ELECTION)

    def accepted(now: OperatorControls) -> OperatorControls:
        return replace(now, pause=choice, loss_accepted_ms=max(choice.at_ms, now.loss_accepted_ms))

    with_store(settings, lambda store: change(store, accepted, may_replace=True))
    if as_json:
        typer.echo(ControlsAnswer(cluster=settings.cluster.name, paused=True).as_line())
        return
    resume_line = command_line("resume", conf=conf)
    _say(f"Accepted: {settings.cluster.name} goes on with the journal that it has. Start `trimtab run` again.")
    _say(f"Paused: no commands until `{resume_line}`. Look at `{command_line('status', conf=conf)}` first.")


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


def _choice(value: str, reason: str, by: str) -> Choice:
    # Whatever somebody pastes as a reason in an emergency, the command has to work.
    kept = printable(reason)[:MAX_REASON]
    return Choice(value=value, reason=kept, by=name_of(by), at_ms=time.time_ns() // 1_000_000)


def _say(text: str) -> None:
    print_line(console(), text)


def name_of(by: str) -> str:
    """*by*, or who runs this command, as the controls keep it."""
    return printable(by or user())[:MAX_NAME]


def user() -> str:
    """Who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # as in a container: the user has a number, and no name
        return f"user {os.getuid()}"
