"""java.util.regex.Pattern, and ours, on the same random expressions and names.

The same cases each time, unless ``TRIMTAB_RIVAL_SEED`` names another seed; ``TRIMTAB_RIVAL_EXPRESSIONS`` says how many.
"""

import os
from base64 import b64encode
from random import Random
from typing import Final

import pytest

from controller.model.errors import SettingsError
from controller.model.java_regex import Expressions
from tests.java_rival.asking import Driver
from tests.java_rival.expressions import expression, names

pytestmark = pytest.mark.integration

_SEED: Final = os.environ.get("TRIMTAB_RIVAL_SEED", "1")
_CASES: Final = int(os.environ.get("TRIMTAB_RIVAL_EXPRESSIONS", "5000"))
_SHOWN: Final = 5
#: As people write them.
_ORDINARY: Final = (
    ".*-(blue|green)-.*az1.*", "(?i:PROD)-.*", "prod-[0-9]{1,3}", "(?!.*old).*", ".*(?<!old)", "[a-z&&[^b]]+-.*",
    r"\w++-\d++", r"broker-\d+\.az[12]\.example\.org", r"\Qbroker-1.\E.*", "(?x) broker - [0-9]+ # all", ".*+",
)  # fmt: skip
_HOSTS: Final = [
    "x-blue-y-az1", "prod-12", "Prod-1", "old-1", "1-old", "acd-x", "abc-x", "broker-1.az1.example.org", "broker-17",
]  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    try:
        return Driver("ExpressionCases.java", "ExpressionCases", [], tmp_path_factory.mktemp("driver"))
    except SettingsError as error:
        pytest.skip(f"without a JDK: {error}")


def test_what_is_read_matches_as_in_java_and_what_is_refused_is_bounded(driver: Driver) -> None:
    random = Random(f"{_SEED}/expressions")
    cases = [(regex, _HOSTS) for regex in _ORDINARY]
    cases += [(expression(random), names(random)) for _ in range(_CASES)]
    answers = driver.answers([" ".join(map(_encoded, (regex, *texts))) for regex, texts in cases])
    wrong, read = list[str](), 0
    for (regex, texts), answer in zip(cases, answers, strict=True):
        ours = Expressions([regex])
        read += not ours.refused
        wrong += _differences(regex, texts, answer, ours)
    assert wrong[:_SHOWN] == []
    assert read > _CASES // 4, "a third can be read"
    assert not Expressions(_ORDINARY).refused


def _differences(regex: str, texts: list[str], answer: str, ours: Expressions) -> list[str]:
    if answer.startswith("none: "):
        return [] if ours.refused else [f"{regex!r} is none in Java: {answer}"]
    hits = ours.hits(texts)
    found = []
    for text, matched in zip(texts, answer, strict=True):
        sure = any(hit.sure for hit in hits.get(text, ()))
        if (matched == "1") != sure and not (matched == "1" and text in hits and regex in ours.refused):
            found.append(f"{regex!r} on {text!r}: Java {matched}, ours {sure}, refused: {ours.refused.get(regex, '')}")
    return found


def _encoded(text: str) -> str:
    return b64encode(text.encode("utf-8", "surrogatepass")).decode()
