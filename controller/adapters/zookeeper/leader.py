"""Finds the process that leads, for people who ask, without taking part in the election."""

from contextlib import closing
from typing import Any

from kazoo.exceptions import NoNodeError

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.contenders import Contenders
from controller.model.leadership import Leader
from controller.wire.process import process_in


def leader_of(access: ZooKeeperAccess, path: str, cluster: str, *, answer_seconds: float) -> Leader | None:
    """The process that leads *cluster*, by the nodes under *path*; None where none is in the election.

    It leads since the epoch was claimed, or, where it has not claimed its own yet, since it entered the election; both
    by ZooKeeper's clock.  TrimtabError where ZooKeeper does not answer, or does not let us in.
    """
    connection = ZooKeeperConnection(access, session_seconds=answer_seconds, read_only=True)
    root = f"{path.rstrip('/')}/{cluster}"

    def ask(request: Any, _: str = "") -> Any:
        return request.get(timeout=answer_seconds)

    client, folder = connection.client, f"{root}/contenders"
    with closing(connection), connection.asking(folder, answer_seconds):
        try:
            names = Contenders(client, folder, "", ask).names()
            if not names:
                return None
            value, entered = ask(client.get_async(f"{folder}/{names[0]}"))
            _, claimed = ask(client.get_async(f"{root}/epoch"))
        except NoNodeError:  # it was deleted in the meantime
            return None
    host, process = process_in(value)
    return Leader(host=host, process=process, since_ms=max(entered.ctime, claimed.mtime))
