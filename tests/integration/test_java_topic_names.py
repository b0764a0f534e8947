"""TopicName of Pulsar 5.0.1, and ours, on the same random names.

The same names each time, unless ``TRIMTAB_RIVAL_SEED`` names another seed; ``TRIMTAB_RIVAL_NAMES`` says how many.
What only earlier releases take is read here too: names with a cluster in them, and empty parts of a short name.
"""

import os
from base64 import b64encode
from random import Random
from typing import Final

import pytest

from controller.model.errors import TrimtabError
from controller.model.topic_name import parse_topic
from tests.java_rival.asking import Driver
from tests.java_rival.releases import Release
from tests.java_rival.topic_names import topic_name

pytestmark = pytest.mark.integration

_SEED: Final = os.environ.get("TRIMTAB_RIVAL_SEED", "1")
_NAMES: Final = int(os.environ.get("TRIMTAB_RIVAL_NAMES", "20000"))
_RELEASE: Final = Release("5.0.1")
_SHOWN: Final = 5


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    try:
        fetched = _RELEASE.jars()
    except TrimtabError as error:
        pytest.skip(f"without the jars of the class: {error}")
    return Driver("TopicNameCases.java", "TopicNameCases", fetched, tmp_path_factory.mktemp("driver"))


def test_a_name_is_read_or_refused_as_by_pulsar_5(driver: Driver) -> None:
    random = Random(f"{_SEED}/topic names")
    names = sorted({topic_name(random) for _ in range(_NAMES)})
    answers = driver.answers([_encoded(name) for name in names])
    found = [
        (name, ours, answer) for name, answer in zip(names, answers, strict=True) if (ours := _ours(name)) != answer
    ]
    assert [each for each in found if not _only_before_5(each[0])][:_SHOWN] == []
    read = [name for name, answer in zip(names, answers, strict=True) if answer != "none"]
    assert len(names) // 4 < len(read) < 3 * len(names) // 4, "both happens"


def _only_before_5(name: str) -> bool:
    """Whether this is a name with a cluster, or a short one with empty parts."""
    domain, separator, rest = name.partition("://")
    return rest.count("/") >= 3 and domain in ("persistent", "non-persistent") if separator else "" in name.split("/")


def _ours(name: str) -> str:
    """What the driver answers, by our reading."""
    try:
        topic = parse_topic(name)
    except TrimtabError:
        return "none"
    start, end, number = topic.segment or (-1, -1, -1)
    texts = (
        _encoded(str(topic)), topic.domain, topic.tenant, topic.namespace, _encoded(topic.local_name),
        topic.partition_index, start, end, number, _encoded(str(topic.whole)),
    )  # fmt: skip
    return " ".join(map(str, texts))


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
