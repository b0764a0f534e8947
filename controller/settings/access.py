"""How servers are reached: TLS, and the credentials that are shown.  Passwords are in files, never in the settings."""

from typing import Literal, Self

from pydantic import model_validator

from controller.settings.section import PathText, Section, Text


class TlsSettings(Section):
    """TLS to a server."""

    trust_certs: PathText | None = None
    """Certificates of the authorities to trust, PEM; without it, the system's."""
    certificate: PathText | None = None
    """Our own certificate, PEM, where the server asks for one."""
    key: PathText | None = None
    """The key of our own certificate, PEM."""
    verify_host: bool = True
    """Refuse certificates that name another host."""

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Self:
        if self.key and not self.certificate:
            raise ValueError("key is given without certificate: name the certificate that it belongs to")
        return self


class ZooKeeperAuthSettings(Section):
    """Who trimtab is in a ZooKeeper.  With it, nodes that trimtab creates can be used by this user alone."""

    scheme: Literal["digest", "sasl"]
    """"digest": user and password go with the connection, and nodes are for digest:user.  "sasl": DIGEST-MD5, the
    server checks the password when the connection begins, and nodes are for sasl:user."""
    user: Text
    """The user's name."""
    password_file: PathText
    """A file with the user's password."""


class KafkaPrincipals(Section):
    """Who trimtab's processes are to Kafka's authorizer: for ``trimtab doctor``, which checks ACLs against it."""

    collector: Text = "User:trimtab-collector"
    """The principal of trimtab collect."""
    controller: Text = "User:trimtab-controller"
    """The principal of trimtab run."""
    executor: Text = "User:trimtab-executor"
    """The principal of trimtab execute."""
    reader: Text = "User:trimtab-reader"
    """The principal of trimtab doctor, status, lookup and commands tail."""
