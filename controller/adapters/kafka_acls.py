"""The ACLs that Kafka has, as ``trimtab doctor`` reads them."""

import logging
from typing import Any, Final, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from controller.adapters.kafka_words import Client, failure

log = logging.getLogger(__name__)


class Acl(NamedTuple):
    """One entry, in the words of kafka-acls.sh."""

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
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client}, logger=log)
    whatever: Any = None
    wanted = AclBindingFilter(
        ResourceType.ANY,
        whatever,
        ResourcePatternType.ANY,
        whatever,
        whatever,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        found: Any = admin.describe_acls(wanted, request_timeout=answer_seconds).result(answer_seconds + 1)
    except ck.KafkaException as error:
        if error.args[0].code() == ck.KafkaError.SECURITY_DISABLED:
            return None
        raise failure(f"Kafka at {bootstrap}", error, client, operation="Describe") from error
    return tuple(map(_acl, found))


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
