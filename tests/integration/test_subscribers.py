"""The subscribers of docs/subscribers.md, as they stand there, on a real Kafka: they print the same commands."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.disk import jars
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.deadline import Deadline
from controller.lab.servers import KafkaServer
from controller.settings.log import KafkaLogSettings
from controller.wire.commands import EVENT_HEADERS, command_event
from streaming.sources import CONNECTOR
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.kafka_log import journal_in, named_topics, read_all
from tests.pages import DOCS, blocks
from tests.records import CLUSTER, LEFT, RIGHT, T

pytestmark = pytest.mark.integration

_PATIENCE_SECONDS: Final = 60.0
EXPECTED: Final = [f"trimtab.unload {LEFT} Overloaded expired", f"trimtab.split {RIGHT} Topics expired"]


@pytest.fixture(scope="module")
def log(kafka: KafkaServer) -> KafkaLogSettings:
    """A command topic with two commands, and with what a subscriber must not take for one."""
    log = named_topics(kafka.bootstrap, 1)
    journal = journal_in(log, cluster=CLUSTER)
    journal.open()
    journal.begin_epoch(2)
    journal.append(entry(T, UNLOAD), epoch=2, issued_at_ms=T + 1, before_commit=lambda: None)
    producer = Producer(log.bootstrap)
    of_an_earlier_leader = command_event(replace(UNLOAD, id="late"), 1, T)
    of_another_cluster = command_event(replace(UNLOAD, id="other", cluster="other"), 9, T)
    for value in (of_an_earlier_leader, of_another_cluster):
        producer.send(log.commands_topic, value, partition=0)
    producer.flush()
    journal.append(entry(T + 60_000, SPLIT), epoch=2, issued_at_ms=T + 2, before_commit=lambda: None)
    return log


def _block(language: str) -> str:
    (block,) = (each for each in blocks(DOCS / "subscribers.md") if each.language == language)
    return "\n".join(block.lines) + "\n"


def _printed(command: Sequence[str]) -> list[str]:
    """What *command* prints, up to as many lines as are expected; then it is ended."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            deadline = Deadline.after(_PATIENCE_SECONDS)
            lines: list[str] = []
            assert process.stdout is not None
            while len(lines) < len(EXPECTED) and not deadline.passed:
                line = process.stdout.readline()
                if not line:
                    break
                lines.append(line.rstrip("\n"))
            return lines
        finally:
            process.kill()


def test_every_event_says_in_its_header_that_it_is_a_cloudevent(log: KafkaLogSettings) -> None:
    committed = [record for record in read_all(log.bootstrap, log.commands_topic, 0) if record.headers]
    assert [dict(record.headers) for record in committed] == [dict(EVENT_HEADERS)] * 3  # an epoch and two commands


def test_the_subscriber_in_python_prints_the_commands(log: KafkaLogSettings, tmp_path: Path) -> None:
    program = tmp_path / "subscriber.py"
    program.write_text(_block("python"))
    assert _printed([sys.executable, str(program), log.bootstrap, log.commands_topic, CLUSTER]) == EXPECTED


def test_the_subscriber_in_java_prints_the_same(log: KafkaLogSettings, tmp_path: Path) -> None:
    program = tmp_path / "Subscriber.java"
    program.write_text(_block("java"))
    (compiler,) = jars.fetch("java-compiler")
    classes = os.pathsep.join(map(str, [*jars.fetch(CONNECTOR), *jars.pyspark_jars().glob("*.jar")]))
    compile_it = [
        jars.java(),
        *jars.SHORT_LIFE,
        "-jar",
        str(compiler),
        "-17",
        "-nowarn",
        "-proc:none",
        "-cp",
        classes,
        "-d",
        str(tmp_path),
    ]
    subprocess.run([*compile_it, str(program)], check=True, capture_output=True)
    java = [jars.java(), *jars.SHORT_LIFE, "-cp", f"{tmp_path}{os.pathsep}{classes}"]
    assert _printed([*java, "Subscriber", log.bootstrap, log.commands_topic, CLUSTER]) == EXPECTED
