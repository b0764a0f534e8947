"""Sites for tests of the page and its REST."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from controller.settings.trimtab_toml import Settings, read_settings
from controller.web.app import create_app
from controller.web.assets import Assets
from controller.web.site import ShownCluster, Site
from controller.web.store.queries import PageData
from controller.web.topic_names import TopicLister
from controller.wire.answers.status import StatusAnswer
from tests.folder_settings import write_settings
from tests.page_data import FixedPageData

#: What a site needs so that a test may look without saying who it is.
ANYBODY = ("[web]", 'anonymous = "viewer"')


def site(
    folder: Path,
    *names: str,
    web: tuple[str, ...] = ANYBODY,
    assets: Assets | None = None,
    read_status: Callable[[Settings], Callable[[], StatusAnswer]] | None = None,
    now_ms: Callable[[], int] | None = None,
    data: PageData | None = None,
    list_topics: TopicLister | None = None,
) -> Site:
    """A site of clusters with these *names*, each with its log in a folder of its own below *folder*.

    *web*: lines of the section [web] of each.  *data*: what the store of each knows.  *list_topics*: what brokers list.
    """
    clusters = {}
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        conf = write_settings(folder / name, *web, cluster=name)
        given: dict[str, Any] = {"topic_lister": lambda _: list_topics}
        given |= {} if read_status is None else {"read_status": read_status}
        clusters[name] = ShownCluster(read_settings(conf), conf, data or FixedPageData(name), **given)
    settings = next(iter(clusters.values())).settings.web if clusters else None
    given_time = {} if now_ms is None else {"now_ms": now_ms}
    return Site(clusters, settings, assets=assets, **given_time)  # type: ignore[arg-type]


@contextmanager
def served(shown: Site) -> Iterator[str]:
    """Within the block *shown* is served on this machine; yields its address."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(shown), host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
