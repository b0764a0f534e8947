"""``trimtab pause``, ``resume``, ``mode`` and ``stop-all``: what a person sets, for every controller of the cluster."""

import getpass
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Final

import typer

from controller.adapters.opened import election_system, log_system
from controller.cli.common import DEFAULT_CONF, Conf
from controller.doctor.before_acting import refuse_rivals
from controller.model.controls import PAUSED, RUNNING, Choice, OperatorControls
from controller.model.errors import ControlsCorruptError, LeadershipLostError, TrimtabError
from controller.ports.controls import ControlStore
from controller.settings.trimtab_toml import Settings, read_settings

_TRIES: Final = 5

_Reason = Annotated[str, typer.Option(help="Why; shown by `trimtab status` and kept in the journal.")]
_By = Annotated[str, typer.Option(help="Who.", show_default="your user name")]


class Mode(StrEnum):
    """What `trimtab mode` sets."""

    ACTIVE = "active"
    DRY_RUN = "dry_run"
    OBSERVE = "observe"
    #: Whatever decisions.mode says: nobody has chosen.
    SETTINGS = "settings"


def pause(conf: Conf = DEFAULT_CONF, reason: _Reason = "", by: _By = "") -> None:
    """Issue no more commands, from the next interval on, until `trimtab resume`; restarts and takeovers included."""
    settings = read_settings(conf)
    choice = _choice(PAUSED, reason, by)
    with_store(settings, lambda store: change(store, lambda now: replace(now, pause=choice)))
    typer.echo(f"Paused {settings.cluster.name}: no commands from the next interval on, until `trimtab resume`.")
    typer.echo("Commands that were issued already are still carried out; `trimtab stop-all` stops those, too.")


def resume(conf: Conf = DEFAULT_CONF, reason: _Reason = "", by: _By = "") -> None:
    """Let commands be issued again, and close the breaker if it has tripped."""
    settings = read_settings(conf)
    choice = _choice(RUNNING, reason, by)

    def resumed(now: OperatorControls) -> OperatorControls:
        return replace(now, pause=choice, resumed_ms=max(choice.at_ms, now.resumed_ms + 1))

    with_store(settings, lambda store: change(store, resumed))
    typer.echo(f"Resumed {settings.cluster.name}: commands may be issued from the next interval on.")


def mode(
    value: Annotated[Mode, typer.Argument(help="settings: what decisions.mode says.")],
    conf: Conf = DEFAULT_CONF,
    reason: _Reason = "",
    by: _By = "",
) -> None:
    """Set the mode of every controller of the cluster; it holds over decisions.mode until somebody sets another."""
    settings = read_settings(conf)
    choice = None if value is Mode.SETTINGS else _choice(value.value, reason, by)
    in_force = settings.decisions.mode if choice is None else choice.value
    refuse_rivals(settings, mode=in_force)
    with_store(settings, lambda store: change(store, lambda now: replace(now, mode=choice)))
    typer.echo(f"The mode of {settings.cluster.name} is {in_force} from the next interval on.")


def stop_all(conf: Conf = DEFAULT_CONF, reason: _Reason = "stop-all", by: _By = "") -> None:
    """Pause, and have executors refuse every command that they have not begun; works without a running controller."""
    settings = read_settings(conf)
    choice = _choice(PAUSED, reason, by)

    def stop(store: ControlStore) -> None:
        failure = ""
        try:
            change(store, lambda now: replace(now, pause=choice))
            typer.echo(f"Paused {settings.cluster.name}: no commands until `trimtab resume`.")
        except TrimtabError as error:
            # The commands under way are stopped all the same.
            failure = f"the pause could not be stored, so a controller goes on with new commands: {error}"
        epoch = fence(settings, store, may_be_unknown=bool(failure))
        typer.echo(f"Epoch {epoch} begins: executors answer older commands that they have not begun with 'fenced'.")
        typer.echo("A running leader finds out, starts anew, and reads the pause.")
        if failure:
            raise TrimtabError(failure)

    with_store(settings, stop)


def change(store: ControlStore, how: Callable[[OperatorControls], OperatorControls]) -> OperatorControls:
    """Set what *how* makes of the controls; again where somebody else came in between.  TrimtabError."""
    for _ in range(_TRIES):
        try:
            now, version = store.read()
        except ControlsCorruptError as error:
            typer.echo(f"{error}; what lies there is replaced", err=True)
            now, version = OperatorControls(), store.version()
        changed = how(now)
        if store.write(changed, version):
            return changed
    raise TrimtabError(f"the controls were changed by others {_TRIES} times meanwhile: try again")


def fence(settings: Settings, store: ControlStore, *, may_be_unknown: bool = False) -> int:
    """Begin a new epoch in the journal and for everyone who reads commands, and end the running leadership."""
    for _ in range(_TRIES):
        journal = log_system(settings).journal()
        head = journal.open()
        try:
            stored = store.epoch()
        except TrimtabError:
            if not may_be_unknown:
                raise
            stored = 0
        epoch = max(head.epoch, stored) + 1
        try:
            journal.begin_epoch(epoch)
        except LeadershipLostError:
            continue  # a controller began to lead in this moment: it is ended, too
        if not may_be_unknown:
            store.raise_epoch(epoch)
        return epoch
    raise TrimtabError(f"controllers began to lead {_TRIES} times meanwhile: try again")


def with_store(settings: Settings, use: Callable[[ControlStore], object]) -> None:
    """Call *use* with the cluster's store, and close that."""
    store = election_system(settings).controls()
    try:
        use(store)
    finally:
        store.close()


def _choice(value: str, reason: str, by: str) -> Choice:
    return Choice(value=value, reason=reason, by=by or getpass.getuser(), at_ms=time.time_ns() // 1_000_000)
