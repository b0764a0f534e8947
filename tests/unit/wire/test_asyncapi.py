"""docs/asyncapi.json describes the topics that there are, and refers to schemas that there are."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from controller.settings.log import KafkaLogSettings
from controller.wire.asyncapi import TOPICS, document
from controller.wire.commands import EVENT_HEADERS, command_event, epoch_event
from controller.wire.schemas import ASYNCAPI, FOLDER, MODELS, asyncapi_text
from tests.journal_entries import SPLIT, UNLOAD
from tests.records import CLUSTER, T

DOCUMENT: Final = document()
#: What is no record of a topic: answers of commands, and files.
_FILES: Final = {"plan"}


def _refs(part: Any) -> Iterator[str]:
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if key == "$ref":
            yield value
        else:
            yield from _refs(value)


def test_it_is_current() -> None:
    assert ASYNCAPI.read_text(encoding="utf-8") == asyncapi_text(), "run: python -m controller.wire.schemas"


def test_everything_that_it_refers_to_is_there() -> None:
    refs = set(_refs(DOCUMENT))
    assert len(refs) > 20
    for ref in refs:
        if ref.startswith("#/"):
            part: Any = DOCUMENT
            for key in ref.removeprefix("#/").split("/"):
                part = part[key]
        else:
            assert (FOLDER.parent / ref).is_file(), ref


def test_every_record_is_a_message_of_a_topic() -> None:
    described = {message["name"] for message in DOCUMENT["components"]["messages"].values()}
    assert described == {name for name in MODELS if not name.startswith("answer.")} - _FILES
    used = {ref for channel in DOCUMENT["channels"].values() for ref in _refs(channel["messages"])}
    assert used == {f"#/components/messages/{name}" for name in DOCUMENT["components"]["messages"]}


def test_topics_have_the_names_that_they_have_without_settings() -> None:
    settings = KafkaLogSettings(bootstrap="kafka:9092")
    names = {key: value for key, value in settings.model_dump().items() if key.endswith("_topic")}
    assert {topic.key: topic.name for topic in TOPICS} == names
    assert [channel["address"] for channel in DOCUMENT["channels"].values()] == [topic.name for topic in TOPICS]


def test_each_topic_is_written_by_one_of_trimtabs_processes() -> None:
    sending = {each["channel"]["$ref"] for each in DOCUMENT["operations"].values() if each["action"] == "send"}
    assert sending == {f"#/channels/{name}" for name in DOCUMENT["channels"]}


@pytest.mark.parametrize("value", [command_event(UNLOAD, 3, T), command_event(SPLIT, 3, T), epoch_event(CLUSTER, 3, T)])
def test_a_command_is_a_cloudevent_for_the_sdk_of_cloudevents(value: bytes) -> None:
    kafka = pytest.importorskip("cloudevents.core.bindings.kafka", reason="comes with the next requirements.lock")
    message = kafka.KafkaMessage(headers=dict(EVENT_HEADERS), key=None, value=value)
    event = kafka.from_kafka_event(message)
    written = json.loads(value)
    assert event.get_specversion() == "1.0"
    assert event.get_attributes()["epoch"] == written["epoch"] == 3
    assert {"id": event.get_id(), "type": event.get_type(), "source": event.get_source()} == {
        key: written[key] for key in ("id", "type", "source")
    }
    assert event.get_data() == written["data"]
