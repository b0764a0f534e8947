"""TLS and credentials for servers.  The settings name files that hold the passwords, never the passwords."""

import re
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, model_validator

from controller.settings.section import PathText, Section, Text

#: Kafka: KafkaPrincipal, a type and a name.
_PRINCIPAL: Final = re.compile(r"[^:\s]+:\S.*")


def _principal(name: str) -> str:
    if not _PRINCIPAL.fullmatch(name):
        raise ValueError(f"a principal has a type and a name: is User:{name} meant?")
    return name


Principal: TypeAlias = Annotated[str, AfterValidator(_principal)]


class TlsSettings(Section):
    """TLS to a server."""

    trust_certs: PathText | None = None
    """Certificates of the authorities to trust, PEM.  Default: those of the system."""
    certificate: PathText | None = None
    """trimtab's own certificate, PEM, where the server asks for one."""
    key: PathText | None = None
    """The private key of that certificate, PEM."""
    verify_host: bool = True
    """Refuse a server whose certificate names another host."""

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Self:
        if self.key and not self.certificate:
            raise ValueError("key is given without certificate: name the certificate that it belongs to")
        return self


class ZooKeeperAuthSettings(Section):
    """trimtab's credentials in a ZooKeeper.  With them, only this user may use the nodes that trimtab creates."""

    scheme: Literal["digest", "sasl"]
    """"digest": user and password go with the connection, and nodes are for digest:user.  "sasl": DIGEST-MD5, the
    server checks the password when the connection begins, and nodes are for sasl:user."""
    user: Text
    """The user's name."""
    password_file: PathText
    """A file with the user's password."""


class KafkaPrincipals(Section):
    """The principals of trimtab's processes in Kafka: ``trimtab doctor`` checks the ACLs of these principals."""

    collector: Principal = "User:trimtab-collector"
    """The principal of trimtab collect."""
    controller: Principal = "User:trimtab-controller"
    """The principal of trimtab run."""
    executor: Principal = "User:trimtab-executor"
    """The principal of trimtab execute."""
    reader: Principal = "User:trimtab-reader"
    """The principal of trimtab doctor, trimtab status, trimtab lookup and trimtab commands tail."""
