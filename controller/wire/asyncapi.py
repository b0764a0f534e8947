"""All topics as an AsyncAPI 3 document, for those who write producers and subscribers: docs/asyncapi.json.

It is made of the same models as docs/schemas, to which it refers.  ``python -m controller.wire.schemas`` writes both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from controller.wire import cells, commands, journal_records, metrics, results, summary
from controller.wire.dead_letter import DeadLetter

_SPECIFICATION: Final = "3.0.0"
#: Of the interface: the ``v`` of its records.
_INTERFACE: Final = "1.0.0"
_JSON_SCHEMA: Final = "application/schema+json;version=draft-2020-12"
_BINDING: Final = "0.5.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic:
    """A topic as others see it."""

    #: [log.kafka] <key>, and the name that it has unless the settings give another.
    key: str
    name: str
    what: str
    models: Mapping[str, type[BaseModel]]
    #: Which of trimtab's processes write to it, and which read it.
    senders: Sequence[str]
    receivers: Sequence[str]
    #: What the key of a record is; "" where it has none.
    record_key: str = ""
    #: The media type of a record.
    media_type: str = "application/json"


TOPICS: Final = (
    DescribedTopic(
        key="metrics_topic",
        name="trimtab-metrics",
        what="The load of brokers and bundles, and the ticks that end an interval (docs/records.md).",
        models=metrics.MODELS,
        senders=("collector",),
        receivers=("controller",),
        record_key="The broker, of sweeps and load reports; the namespace, bundle or topic, of what belongs to one.",
    ),
    DescribedTopic(
        key="results_topic",
        name="trimtab-results",
        what="How each command ended; and the ticks, as in the metrics topic.",
        models={"result": results.Result, "tick": metrics.MODELS["tick"]},
        senders=("executor", "collector"),
        receivers=("controller",),
        record_key="The namespace of the command's bundle.",
    ),
    DescribedTopic(
        key="commands_topic",
        name="trimtab-commands",
        what="Commands as CloudEvents 1.0 in structured mode, and the epoch of each new leader (docs/subscribers.md).",
        models=commands.MODELS,
        senders=("controller",),
        receivers=("executor",),
        record_key="The namespace of the bundle; none of an epoch.",
        media_type="application/cloudevents+json",
    ),
    DescribedTopic(
        key="journal_topic",
        name="trimtab-journal",
        what="Every decision, with the controller's memory after it (docs/journal.md).  One partition.",
        models={f"journal.{name}": model for name, model in journal_records.RECORDS.items()},
        senders=("controller",),
        receivers=("controller",),
    ),
    DescribedTopic(
        key="dead_letters_topic",
        name="trimtab-dead-letters",
        what="Records that were refused, with the reason.",
        models={"dead_letter": DeadLetter},
        senders=("controller",),
        receivers=(),
        record_key="Where the record lay.",
    ),
    DescribedTopic(
        key="summaries_topic",
        name="trimtab-summaries",
        what="What the page shows of each interval (docs/page_data.md).  One partition; no decision depends on it.",
        models=summary.MODELS,
        senders=("controller",),
        receivers=("page",),
    ),
    DescribedTopic(
        key="election_topic",
        name="trimtab-election",
        what="What trimtab's processes share where the election lies in the log: for them alone.  One partition.",
        models={f"election.{name}": model for name, model in cells.MODELS.items()},
        senders=("controller", "collector", "executor", "page"),
        receivers=("controller", "collector", "executor", "page"),
    ),
)


def document() -> dict[str, Any]:
    """The document; its schemas are files of the folder ``schemas`` beside it."""
    return {
        "asyncapi": _SPECIFICATION,
        "info": {
            "title": "trimtab",
            "version": _INTERFACE,
            "description": "The topics of trimtab, an external load-balance controller for Apache Pulsar.  Operations"
            " are those of trimtab's own processes: what they send, others may read.  Read with isolation.level"
            " read_committed.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": "{bootstrap}",
                "protocol": "kafka-secure",
                "description": "[log.kafka] bootstrap in trimtab.toml.",
                "variables": {"bootstrap": {"default": "localhost:9093"}},
            }
        },
        "channels": {_channel(topic): _described(topic) for topic in TOPICS},
        "operations": dict(_operations()),
        "components": {"messages": {name: message for topic in TOPICS for name, message in _messages(topic).items()}},
    }


def _channel(topic: DescribedTopic) -> str:
    head, *rest = topic.key.removesuffix("_topic").split("_")
    return head + "".join(part.capitalize() for part in rest)


def _name(name: str) -> str:
    """*name* as keys of the document are: letters, digits and dashes."""
    return name.replace(".", "-").replace("_", "-")


def _described(topic: DescribedTopic) -> dict[str, Any]:
    return {
        "address": topic.name,
        "title": f"[log.kafka] {topic.key}",
        "description": topic.what,
        "messages": {_name(name): {"$ref": f"#/components/messages/{_name(name)}"} for name in topic.models},
        "bindings": {"kafka": {"topic": topic.name, "bindingVersion": _BINDING}},
    }


def _messages(topic: DescribedTopic) -> dict[str, Any]:
    """The messages of *topic*; a tick is the same in both of its topics, but for its key."""
    return {_name(name): _message(topic, name, model) for name, model in topic.models.items()}


def _message(topic: DescribedTopic, name: str, model: type[BaseModel]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "contentType": topic.media_type,
        "summary": (model.__doc__ or "").strip().partition("\n")[0],
        "payload": {"schemaFormat": _JSON_SCHEMA, "schema": {"$ref": f"schemas/{name}.json"}},
    }
    if topic.key == "commands_topic":
        texts = {key: {"const": value.decode()} for key, value in commands.EVENT_HEADERS.items()}
        made["headers"] = {"type": "object", "properties": texts}
    if name in ("result", "trimtab.unload", "trimtab.split"):
        made["correlationId"] = {"location": "$message.payload#/id", "description": "The command and its result."}
    if topic.record_key and name != "tick":
        key = {"type": "string", "description": topic.record_key}
        made["bindings"] = {"kafka": {"key": key, "bindingVersion": _BINDING}}
    return made


def _operations() -> Sequence[tuple[str, dict[str, Any]]]:
    return [
        (f"{process}{verb}{_channel(topic)[0].upper()}{_channel(topic)[1:]}", _operation(topic, action, process))
        for topic in TOPICS
        for action, verb, processes in (("send", "Sends", topic.senders), ("receive", "Receives", topic.receivers))
        for process in processes
    ]


def _operation(topic: DescribedTopic, action: str, process: str) -> dict[str, Any]:
    return {
        "action": action,
        "summary": f"trimtab's {process}",
        "channel": {"$ref": f"#/channels/{_channel(topic)}"},
    }
