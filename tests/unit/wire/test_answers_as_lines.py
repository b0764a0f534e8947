"""The answers of commands as lines of JSON."""

import json

import pytest
from pydantic import BaseModel, ValidationError

from controller.wire.answers.status import ControlsAnswer
from controller.wire.base import Envelope
from controller.wire.plan import FitRecord


def test_an_answer_holds_nothing_that_steers_a_terminal_and_says_the_same() -> None:
    steering = "\x1b[2J\x9b2J\x7f\u2028"
    line = ControlsAnswer(cluster=steering, paused=True).as_line()
    assert line.isprintable()
    assert json.loads(line)["cluster"] == steering


def test_what_was_read_or_answered_is_not_changed_afterwards() -> None:
    for made in (ControlsAnswer(cluster="lab", paused=True), Envelope(cluster="lab")):
        with pytest.raises(ValidationError, match="frozen"):
            made.cluster = "other"
        assert made.cluster == "lab"


def test_an_answer_and_a_part_of_a_plan_know_no_other_fields_than_their_own() -> None:
    kinds: tuple[type[BaseModel], ...] = (ControlsAnswer, FitRecord)
    for kind in kinds:
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            kind.model_validate({"paws": 4})
