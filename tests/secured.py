"""Servers that serve nobody unauthenticated, and who comes to them."""

from pathlib import Path
from typing import Any

from controller.adapters.secured_servers import ServerTls
from controller.adapters.tls import Tls
from controller.adapters.zookeeper_access import ZooKeeperAccess
from controller.settings.access import ZooKeeperAuthSettings

TLS = Path(__file__).parent / "data" / "tls"
CA, ANOTHER_CA = TLS / "ca.pem", TLS / "another-ca.pem"
#: A server at 127.0.0.1 that any client may talk to, one for clients with a certificate, one whose own has expired.
SERVER = ServerTls(certificate=TLS / "broker.pem", key=TLS / "broker.key")
MUTUAL = ServerTls(certificate=TLS / "broker.pem", key=TLS / "broker.key", client_authorities=CA)
EXPIRED = ServerTls(certificate=TLS / "expired.pem", key=TLS / "expired.key")


def ours(certificate: str = "client", authority: Path = CA) -> Tls:
    """Who we are and whom we trust; *certificate* "" for none of our own."""
    if not certificate:
        return Tls(trust_certs=str(authority))
    return Tls(
        trust_certs=str(authority), certificate=str(TLS / f"{certificate}.pem"), key=str(TLS / f"{certificate}.key")
    )


def secret(folder: Path, content: str) -> str:
    """A file with *content*."""
    file = folder / f"secret-{content}"
    file.write_text(content + "\n", encoding="utf-8")
    return str(file)


def access(hosts: str, folder: Path, scheme: Any, user: str, password: str, tls: Tls | None = None) -> ZooKeeperAccess:
    """*user* at the ZooKeeper at *hosts*; the password goes into a file in *folder*."""
    auth = ZooKeeperAuthSettings(scheme=scheme, user=user, password_file=secret(folder, password))
    return ZooKeeperAccess(hosts=hosts, auth=auth, tls=tls)
