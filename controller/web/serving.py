"""What ``trimtab serve`` runs: a store for each cluster, the site on them, and the server."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from controller.adapters.disk.files import refuse_not_writable
from controller.adapters.disk.scratch import held_folder
from controller.adapters.metrics.web import WebMetrics
from controller.adapters.network.unreachable import words
from controller.adapters.process import signals
from controller.log.elections import election_system
from controller.log.factory import log_system
from controller.model.errors import SettingsError
from controller.settings.addresses import host_and_port
from controller.settings.trimtab_toml import Settings
from controller.settings.web import WebSettings
from controller.web.app import create_app
from controller.web.notifications.running import notified, receivers
from controller.web.server import QUEUE, PageServer
from controller.web.site import ShownCluster, Site
from controller.web.store.feed import Feed
from controller.web.store.queries import PageData
from controller.web.store.store import Store

log = logging.getLogger(__name__)


class ClusterConf(NamedTuple):
    """Settings, and the file that has them."""

    settings: Settings
    conf: Path


def serve_page(
    confs: Sequence[ClusterConf],
    web: WebSettings,
    metrics: WebMetrics,
    until: threading.Event,
    *,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve the clusters of *confs* as *web* says, until *until* is set; *started* is called when connections come in.

    SettingsError where nobody may look, two clusters have one name, or the address cannot be had.
    """
    _refuse_unusable(confs, web)
    with ExitStack() as stack:
        listening = stack.enter_context(_listening(web))
        folder = _folder(web, stack)
        clusters = {}
        for each in confs:
            own = folder / each.settings.cluster.name
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            data, controls_changed = stack.enter_context(_store(each.settings, own))
            clusters[each.settings.cluster.name] = ShownCluster(
                each.settings, each.conf, data, written=controls_changed
            )
            stack.enter_context(notified(each.settings, data, metrics))
        site = Site(clusters, web, metrics=metrics)
        server = PageServer(create_app(site), listening, connections=web.connections, tls=web.tls)
        host, port = listening.getsockname()[:2]
        log.info("the page is at %s", address(web, str(host), int(port)))
        started()
        server.run(until, lambda: _beat(site, metrics))


def _refuse_unusable(confs: Sequence[ClusterConf], web: WebSettings) -> None:
    """SettingsError where nobody may look, two clusters have one name, or a file or folder cannot be used."""
    if not web.somebody_may_look:
        raise SettingsError(
            f"{confs[0].conf}: nobody may look at the page: set web.tokens_file (`trimtab token NAME` makes tokens),"
            ' [web.oidc], [web.tls] with users or [web.proxy]; or anonymous = "viewer" in [web]'
        )
    names = [each.settings.cluster.name for each in confs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two settings files are of cluster {twice!r}: the page shows each cluster once")
    if web.store_path is not None:
        refuse_not_writable("web.store_path", web.store_path)
    for each in confs:
        receivers(each.settings)


def address(web: WebSettings, host: str, port: int) -> str:
    """Where a browser on this machine finds the page."""
    in_brackets = f"[{host}]" if ":" in host else host
    return f"{'http' if web.tls is None else 'https'}://{in_brackets}:{port}/"


@contextmanager
def _listening(web: WebSettings) -> Iterator[socket.socket]:
    host, port = host_and_port(web.listen)
    try:
        family, _, _, _, sockaddr = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.create_server(sockaddr[:2], family=family, backlog=QUEUE)
    except OSError as error:
        raise SettingsError(
            f"the page cannot be served at {web.listen} (listen in [web], --listen): {words(error)}; end the process"
            " that listens there, or choose another address"
        ) from error
    with closing(server):
        yield server


@contextmanager
def _store(settings: Settings, folder: Path) -> Iterator[tuple[PageData, Callable[[], None]]]:
    """Within the block the store in *folder* is filled from the log and the controls of *settings*.

    Also what to call where the controls are to be read at once.
    """
    with (
        closing(Store(folder, cluster=settings.cluster.name)) as store,
        closing(election_system(settings).controls()) as controls,
        closing(Feed(store, log_system(settings).connect, lambda: controls.read()[0])) as feed,
    ):
        feed.start()
        yield store, feed.read_controls


def _folder(web: WebSettings, stack: ExitStack) -> Path:
    """Where the stores lie: each cluster's in a folder of its own."""
    if web.store_path is not None:
        return Path(web.store_path)
    # It also deletes what killed processes left: up to 1 GB each, which a volume of a pod would keep.
    folder = held_folder("trimtab-page-")
    delete = partial(rmtree, folder, ignore_errors=True)
    stack.callback(delete)
    stack.enter_context(signals.cleaned_up_at_end(delete))
    return folder / "clusters"


def _beat(site: Site, metrics: WebMetrics) -> None:
    """The server lives, and says what it has loaded: it also serves while the log is away, or still being read."""
    metrics.health.beat()
    loading = [name for name, each in site.clusters.items() if not each.data.progress().complete]
    what = f"loads the past of {', '.join(loading)}" if loading else f"shows {', '.join(site.clusters)}"
    metrics.health.ready(f"serves the page and {what}")
