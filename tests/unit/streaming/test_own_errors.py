"""An error of trimtab that Spark hands on as text keeps its words and its exit code."""

import pytest

from controller.model.errors import TrimtabError
from streaming.own_errors import own_error

_TRACE = """\
[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: Job aborted. SQLSTATE: XXKST
=== Streaming Query ===
Traceback (most recent call last):
  File "/x/streaming/state.py", line 40, in _loaded
{raised}

\tat org.apache.spark.Some(Some.scala:1)
"""


@pytest.mark.parametrize(
    ("raised", "exit_code", "text"),
    [
        ("controller.model.errors.StateError: stored state is cut off", 2, "stored state is cut off"),
        ("controller.model.errors.AccessDeniedError: may not read", 77, "may not read"),
        ("controller.model.errors.LogOfflineError: partition 3 is offline", 1, "partition 3 is offline"),
        ("controller.adapters.pulsar.log.planner.ReplacedLogError: created anew", 1, "created anew"),
    ],
)
def test_it_keeps_its_words_and_exit_code(raised: str, exit_code: int, text: str) -> None:
    error = own_error(_TRACE.format(raised=raised))
    assert isinstance(error, TrimtabError)
    assert (str(error), error.exit_code) == (text, exit_code)


def test_an_error_of_others_is_none_of_ours() -> None:
    assert own_error(_TRACE.format(raised="ValueError: controller.model.errors.StateError: x")) is None
