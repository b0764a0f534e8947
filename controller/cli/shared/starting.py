"""How `run`, `collect` and `execute` start: wrong settings end them; they wait for servers that cannot be reached."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

from controller.adapters.controls_in_force import mode_in_force
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.outages import OutageWatch, Part, servers
from controller.adapters.registration import registered
from controller.cli.shared.common_options import own_version
from controller.doctor import before_acting
from controller.log.elections import election_system, registry_of
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)


@contextmanager
def started(
    settings: Settings,
    stop: Callable[[], bool],
    *needed: Part,
    decides: bool = False,
    metrics: ProcessMetrics | None = None,
    meanwhile: Callable[[], None] | None = None,
    is_listed: bool = True,
) -> Iterator[OutageWatch | None]:
    """Enter once the *needed* parts can be reached; with None where *stop* said to give up first.

    Within the block a part that cannot be reached any more is logged, once, and once more when it answers again.

    Raises SettingsError where settings are wrong, also the name of the cluster, which the brokers are asked for.
    *decides*: this process decides, so it uses broker.conf and the checkpoint.  *metrics* shows what can be reached.
    *meanwhile* is called before any server is asked: it begins what takes long.  Where it *is_listed*, and has
    *metrics*, the registry shows this process within the block, also while it waits.
    """
    before_acting.refuse_wrong_settings(settings, decides=decides)
    if meanwhile is not None:
        meanwhile()
    watched = servers(settings, {*needed, Part.BROKERS})
    if watched:
        log.info("asking whether they answer: %s", ", ".join(server.name for server in watched.values()))
    listed = (
        nullcontext()
        if metrics is None or not is_listed
        else registered(settings, partial(registry_of, settings), metrics, own_version())
    )
    with listed, OutageWatch(watched) as watch:
        if metrics is not None:
            metrics.waits_for_servers(watch)
        if not watch.wait_for(needed, stop):
            yield None
            return
        if decides and _mode(settings) == "active" and not watch.wait_for([Part.BROKERS], stop):
            yield None
            return
        if not watch.is_away(Part.BROKERS):
            before_acting.refuse_another_cluster(settings)
        if metrics is not None:
            metrics.begins()
        yield watch


def _mode(settings: Settings) -> str:
    store = election_system(settings).controls()
    try:
        return mode_in_force(settings.decisions.mode, store)
    finally:
        store.close()
