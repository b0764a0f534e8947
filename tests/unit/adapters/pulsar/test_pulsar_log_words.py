"""What errors of Pulsar's client library become."""

import pulsar
import pytest

from controller.adapters.pulsar.log.errors import failure, offline
from controller.model.errors import AccessDeniedError, LogOfflineError, TrimtabError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (pulsar.Timeout("late"), "there: no answer in time"),
        (pulsar.ConnectError("no"), "there: no broker can be reached"),
        (pulsar.TopicNotFound("no"), "there: the topic does not exist"),
        (pulsar.UnknownError("Pulsar error: UnknownError"), "there: UnknownError"),
    ],
)
def test_a_failure_says_where_and_what(error: Exception, said: str) -> None:
    told = failure("there", error, operation="produce")
    assert str(told) == said
    assert not isinstance(told, AccessDeniedError)


def test_a_refused_right_is_named() -> None:
    told = failure("there", pulsar.AuthorizationError("no"), operation="consume")
    assert isinstance(told, AccessDeniedError)
    assert "may not consume here" in str(told)
    assert "grant-permission" in str(told)


def test_refused_credentials_are_told_apart_from_a_missing_right() -> None:
    told = failure("there", pulsar.AuthenticationError("no"), operation="consume")
    assert isinstance(told, AccessDeniedError)
    assert "token_file" in str(told)


def test_trimtabs_own_errors_stay_as_they_are() -> None:
    own = TrimtabError("own")
    assert failure("there", own, operation="produce") is own


def test_a_partition_that_cannot_be_written_to_is_offline_unless_pulsar_refuses() -> None:
    assert isinstance(offline("there", pulsar.Timeout("late")), LogOfflineError)
    assert isinstance(offline("there", pulsar.AuthorizationError("no")), AccessDeniedError)
