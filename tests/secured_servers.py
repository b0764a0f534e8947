"""Real servers that refuse clients that do not authenticate.

Kafka: SASL_SSL (PLAIN) and ACLs, everything denied by default.  ZooKeeper: TLS, and digest or SASL demanded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kazoo.security import make_digest_acl_credential

from controller.adapters.disk import files
from controller.adapters.kafka import topics as kafka_topics
from controller.lab.servers import KafkaServer, ZooKeeperServer, free_port, is_free

#: The superuser that prepares a server; the password is used only on this machine.
SUPER: Final = "super"
SUPER_PASSWORD: Final = "super-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """A server's certificate, and the authorities it trusts; PEM."""

    certificate: Path
    key: Path
    #: Where it is given, clients must have a certificate of these authorities.
    client_authorities: Path | None = None

    def keystore(self, folder: Path) -> Path:
        """Key and certificate in one file, as Java reads them."""
        file = folder / "keystore.pem"
        files.replace(file, self.key.read_bytes() + self.certificate.read_bytes())
        return file


class SecuredKafka(KafkaServer):
    """A broker that serves *users* (name -> password), and :data:`SUPER`, by SASL_SSL and ACLs alone.

    *authorities* are those of its certificate.  *trusting*: it accepts its own certificate, and whoever prepares it
    does, even where that has expired.
    """

    def __init__(
        self, folder: Path, *, users: Mapping[str, str], tls: ServerTls, authorities: Path, trusting: bool = False
    ) -> None:
        super().__init__(folder)
        self._trusting = trusting
        self._users, self._tls, self._authorities = {**users, SUPER: SUPER_PASSWORD}, tls, authorities

    def client(self, user: str = SUPER, password: str | None = None) -> dict[str, str | int | float | bool]:
        """[log.kafka.client] of *user*."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": self._users[user] if password is None else password,
            "ssl.ca.location": str(self._authorities),
        }

    def _configuration(self) -> str:
        users = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        plain = super()._configuration().replace("PLAINTEXT://" + self.address, "SASL_SSL://" + self.address)
        plain = plain.replace("PLAINTEXT:PLAINTEXT,", "SASL_SSL:SASL_SSL,INTERNAL:PLAINTEXT,")
        among_brokers = "SASL_SSL"
        if self._trusting:
            # A broker that talks to itself by an expired certificate does not start.
            among_brokers, internal = "INTERNAL", f"INTERNAL://127.0.0.1:{free_port()},"
            plain = plain.replace("listeners=SASL_SSL", f"listeners={internal}SASL_SSL")
        return f"""{plain}
inter.broker.listener.name={among_brokers}
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={login} username="{SUPER}" password="{SUPER_PASSWORD}" {users};
ssl.keystore.type=PEM
ssl.keystore.location={self._tls.keystore(self.folder)}
ssl.truststore.type=PEM
ssl.truststore.location={self._authorities}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{SUPER};User:ANONYMOUS
allow.everyone.if.no.acl.found=false
"""

    def _answers(self) -> bool:
        return not is_free(self.port) and (self._trusting or kafka_topics.ping(self.bootstrap, 2.0, self.client()))


class SecuredZooKeeper(ZooKeeperServer):
    """A server that serves only who authenticates by *scheme*; by TLS alone where *tls* is given.

    *users* (name -> password) are those that "sasl" knows; "digest" takes whoever says a name.
    """

    def __init__(
        self, folder: Path, *, scheme: Literal["digest", "sasl"], users: Mapping[str, str], tls: ServerTls | None = None
    ) -> None:
        super().__init__(folder)
        self._scheme, self._tls = scheme, tls
        self.users = dict(users)
        self._jaas = self.folder / "jaas.conf"

    def _prepare(self, classpath: str) -> None:
        super()._prepare(classpath)
        text = self._cfg.read_text(encoding="utf-8")
        if self._tls is not None:
            text = text.replace("clientPort", "secureClientPort") + self._encryption(self._tls)
        text += f"authProvider.{self._scheme}={_PROVIDERS[self._scheme]}\n"
        text += f"enforce.auth.enabled=true\nenforce.auth.schemes={self._scheme}\n"
        self._cfg.write_text(text, encoding="utf-8")
        users = "\n".join(f'  user_{name}="{password}"' for name, password in self.users.items())
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        self._jaas.write_text(f"Server {{\n  {module} required\n{users};\n}};\n", encoding="utf-8")

    def _encryption(self, tls: ServerTls) -> str:
        trusted = tls.client_authorities or tls.certificate
        return f"""serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.type=PEM
ssl.keyStore.location={tls.keystore(self.folder)}
ssl.trustStore.type=PEM
ssl.trustStore.location={trusted}
ssl.clientAuth={"need" if tls.client_authorities else "none"}
"""

    def _java_options(self) -> list[str]:
        digest = make_digest_acl_credential(SUPER, SUPER_PASSWORD)
        options = [*super()._java_options(), f"-Dzookeeper.DigestAuthenticationProvider.superDigest={digest}"]
        return [*options, f"-Djava.security.auth.login.config={self._jaas}"] if self._scheme == "sasl" else options

    def _answers(self) -> bool:
        return not is_free(self.port) if self._tls is not None else super()._answers()


_PROVIDERS: Final = {
    "digest": "org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
    "sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
}
