"""The ACLs that Kafka has, as ``trimtab doctor`` reads them."""

from typing import Any, Final, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, Client
from controller.adapters.kafka.errors import failure
from controller.model.errors import TrimtabError

#: The brokers' setting that names it.
_AUTHORIZER: Final = "authorizer.class.name"


class Acl(NamedTuple):
    """One ACL, with the terms of kafka-acls.sh."""

    principal: str
    #: "topic", "group", "transactional-id", "cluster"; others by Kafka's name.
    resource: str
    name: str
    #: "literal" or "prefixed"; a literal name of * is every name.
    pattern: str
    #: "Read", "Write", "All" ...
    operation: str
    allows: bool


def read_acls(bootstrap: str, *, client: Client, answer_seconds: float) -> tuple[Acl, ...] | None:
    """Every ACL of the Kafka at *bootstrap*; None where it has no authorizer, so that everybody may do everything.

    TrimtabError where they cannot be read: it takes the right to Describe the cluster.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client}, logger=LIBRDKAFKA_LOG)
    where = f"Kafka at {bootstrap}"
    whatever: Any = None
    any_acl = AclBindingFilter(
        ResourceType.ANY,
        whatever,
        ResourcePatternType.ANY,
        whatever,
        whatever,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        bindings: Any = admin.describe_acls(any_acl, request_timeout=answer_seconds).result(answer_seconds + 1)
        # librdkafka also returns an empty list without the right to read ACLs, and without an authorizer.
        return tuple(map(_acl, bindings)) or _none_found(admin, where, client, answer_seconds)
    except ck.KafkaException as error:
        if error.args[0].code() == ck.KafkaError.SECURITY_DISABLED:
            return None
        raise failure(where, error, client, operation="Describe") from error
    except TimeoutError as error:
        raise TrimtabError(f"{where}: no answer about its ACLs within {answer_seconds:g} s") from error


def _none_found(admin: AdminClient, where: str, client: Client, seconds: float) -> tuple[Acl, ...] | None:
    """The meaning of an empty list: () an authorizer without ACLs, None no authorizer."""
    cluster = admin.describe_cluster(include_authorized_operations=True, request_timeout=seconds).result(seconds + 1)
    if AclOperation.DESCRIBE not in (cluster.authorized_operations or ()):
        denied = ck.KafkaError(ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        raise failure(where, denied, client, operation="Describe")
    broker = ConfigResource(ConfigResource.Type.BROKER, str(cluster.nodes[0].id))
    [answer] = admin.describe_configs([broker], request_timeout=seconds).values()
    config: Any = answer.result(seconds + 1)
    return () if config[_AUTHORIZER].value else None


def _acl(binding: Any) -> Acl:
    return Acl(
        principal=binding.principal,
        resource=_RESOURCES.get(binding.restype, binding.restype.name.lower()),
        name=binding.name,
        pattern=binding.resource_pattern_type.name.lower(),
        operation="".join(word.capitalize() for word in binding.operation.name.split("_")),
        allows=binding.permission_type == AclPermissionType.ALLOW,
    )


_RESOURCES: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional-id",
    ResourceType.BROKER: "cluster",
}
