"""An error of trimtab that Spark hands on as text keeps its words and its exit code."""

import traceback

import pytest

from controller.model.errors import StateError, StateVersionError, TrimtabError
from streaming.own_errors import damaged_checkpoint, own_error, with_cause

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
        ("controller.model.errors.StateError: stored state is truncated", 2, "stored state is truncated"),
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


def test_an_error_that_was_raised_because_of_another_is_told_with_what_to_do() -> None:
    try:
        try:
            raise StateVersionError("stored state has version 9")
        except StateError as newer:
            raise StateError(f"{newer}: restore the checkpoint") from newer
    except StateError:
        trace = traceback.format_exc()
    error = own_error(f"Job aborted: org.apache.spark.api.python.PythonException: {trace}\n\tat org.x(X.scala:1)\n")
    assert isinstance(error, StateError)
    assert (str(error), error.exit_code) == ("stored state has version 9: restore the checkpoint", 2)


def test_of_two_traces_the_first_is_told() -> None:
    first, second = (f"controller.model.errors.StateError: {word}" for word in ("first", "second"))
    assert str(own_error(_TRACE.format(raised=first) + _TRACE.format(raised=second))) == "first"
    both = f"{first}\n\nDuring handling of the above exception, another exception occurred:\n\n{second}"
    assert str(own_error(_TRACE.format(raised=both))) == "second"


def test_what_led_to_an_error_in_the_end_comes_before_sparks_own_words() -> None:
    trace = "\n\tat org.x(X.scala:1)\nCaused by: "
    told = f"o359.getResult.\n: SparkException: {trace}RuntimeException: no library{trace}IOException: full"
    assert with_cause(told) == f"IOException: full; {told}"
    assert with_cause("Job aborted.\n\tat org.x(X.scala:1)") == "Job aborted.\n\tat org.x(X.scala:1)"


@pytest.mark.parametrize(
    "said",
    [
        "Failed to read log file file:/x/decisions-s8/offsets/23. Incomplete log file SQLSTATE: XXKST",
        "Unexpected end-of-input in field name at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION`"
        " disabled); line: 1, column: 512] SQLSTATE: XXKST",
        "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location file:/x is in an inconsistent state",
        "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query with stateful operators",
        "batch 23 doesn't exist SQLSTATE: XXKST",
        "Job aborted\nCaused by: java.io.EOFException: Stream ended prematurely",
    ],
)
def test_a_damaged_checkpoint_is_for_a_person_and_the_error_says_what_to_do(said: str) -> None:
    error = damaged_checkpoint(f"[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: {said}", "/x/y")
    assert isinstance(error, StateError)
    assert error.exit_code == 2
    assert str(error).startswith("checkpoint.path = '/x/y': it is damaged: restore it, or move all of it away")
    assert said.rpartition("\nCaused by: ")[2] in str(error)


@pytest.mark.parametrize("said", ["java.io.IOException: No space left on device", "Connection refused", "Job aborted"])
def test_what_may_pass_by_itself_is_no_damage_of_the_checkpoint(said: str) -> None:
    assert damaged_checkpoint(_TRACE.format(raised=said), "/x/y") is None
