"""The page beside something else in one process: for the demo."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from controller.adapters.metrics.web import WebMetrics
from controller.model.errors import TrimtabError
from controller.settings.addresses import host_and_port
from controller.settings.trimtab_toml import read_settings
from controller.settings.web import ViewerRole, WebSettings
from controller.web.serving import ClusterConf, address, serve_page

#: The page's thread ends within this time.
_END_SECONDS: Final = 5.0


@contextmanager
def page_beside(conf: Path) -> Iterator[str]:
    """Within the block the page of the settings *conf* is served on this machine, to everybody here; yields where.

    It has the usual port, or another one where that is taken.  TrimtabError where it does not start.
    """
    usual = WebSettings()
    host, port = host_and_port(usual.listen)
    changes = {
        "listen": f"{host}:{_free(host, port)}",
        "anonymous": ViewerRole.OPERATOR,
        "store_path": str(conf.parent / "page"),
    }
    web = WebSettings.model_validate(usual.model_dump() | changes)
    ending, started = threading.Event(), threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            serve_page([ClusterConf(read_settings(conf), conf)], web, WebMetrics(), ending, started=started.set)
        except Exception as error:
            failures.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run, name="page", daemon=True)
    thread.start()
    started.wait()
    if failures:
        raise TrimtabError(f"the page cannot be served: {failures[0]}") from failures[0]
    try:
        yield address(web, *host_and_port(web.listen))
    finally:
        ending.set()
        thread.join(_END_SECONDS)


def _free(host: str, port: int) -> int:
    """*port* where nobody listens there, else one that is free."""
    for each in (port, 0):
        with suppress(OSError), closing(socket.create_server((host, each))) as server:
            return int(server.getsockname()[1])
    return port
