"""TLS and credentials for servers.  The settings name files that hold the passwords, never the passwords."""

import re
from typing import Annotated, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator

from controller.settings.section import PathText, Section, Text, Url

#: Kafka: KafkaPrincipal, a type and a name.
_PRINCIPAL: Final = re.compile(r"[^:\s]+:\S.*")


def _principal(name: str) -> str:
    if not _PRINCIPAL.fullmatch(name):
        raise ValueError(f"a principal has a type and a name: did you mean User:{name}?")
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
            raise ValueError("key is set without certificate: set the certificate that it belongs to")
        return self


def issuer_address(url: str) -> str:
    """*url* of an identity provider; ValueError where it is none, or where secrets would go in plain text."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{url!r}: expected https://host[:port][/path]")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(f"{url!r}: a client secret is sent over https only, except to this machine itself")
    return url.rstrip("/")


class OAuth2Settings(Section):
    """Login by OAuth 2.0 client credentials (RFC 6749, section 4.4), as Pulsar's own clients know it."""

    issuer_url: Annotated[Url, AfterValidator(issuer_address)]
    """The identity provider, https://host/path.  What it publishes at /.well-known/openid-configuration names the
    address that gives out tokens."""
    credentials_file: PathText
    """A JSON file with client_id and client_secret: the key file of Pulsar's clients (privateKey).  It is read anew
    while a process runs."""
    audience: str = ""
    """The audience that the provider expects, often the URN of the Pulsar cluster; "" for none."""
    scope: str = ""
    """Scopes to request, separated by spaces; "" for none."""
    trust_certs: PathText | None = None
    """Certificates of the authorities to trust for the provider, PEM.  Default: those of the system."""


class PulsarLogin(Section):
    """How Pulsar's brokers know who calls: a token, OAuth 2.0, or a user with a password; else a certificate."""

    token_file: PathText | None = None
    """A file with the token for token authentication."""
    oauth2: OAuth2Settings | None = None
    """For tokens from an identity provider, by OAuth 2.0 client credentials."""
    user: str = ""
    """User name for basic authentication; password_file is needed with it."""
    password_file: PathText | None = None
    """A file with the user's password."""

    @model_validator(mode="after")
    def _has_one_login(self) -> Self:
        logins = [key for key in ("token_file", "oauth2", "user") if getattr(self, key)]
        if len(logins) > 1:
            raise ValueError(f"{' and '.join(logins)} are both given: choose one of them")
        if bool(self.user) != bool(self.password_file):
            raise ValueError("user and password_file are needed together: one of them is missing")
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
