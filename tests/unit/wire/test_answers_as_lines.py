"""The answers of commands as lines of JSON."""

import json

from controller.wire.answers.status import ControlsAnswer


def test_an_answer_holds_nothing_that_steers_a_terminal_and_says_the_same() -> None:
    steering = "\x1b[2J\x9b2J\x7f\u2028"
    line = ControlsAnswer(cluster=steering, paused=True).as_line()
    assert line.isprintable()
    assert json.loads(line)["cluster"] == steering
