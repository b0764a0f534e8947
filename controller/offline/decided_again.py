"""The last decision of a recording, or an earlier one: every interval up to it is decided again."""

from typing import NamedTuple

from controller.adapters.long_work import long_work, pieces
from controller.adapters.recordings.reading import Recording
from controller.cycle import Policy
from controller.model.errors import TrimtabError
from controller.offline.record_texts import begin_of
from controller.offline.replay import LogReplay, Replay, ReplayedInterval
from controller.wire.readable import utc


class DecidedAgain(NamedTuple):
    """An interval of a recording, decided again."""

    interval: ReplayedInterval
    #: That of the recording's settings.
    policy: Policy
    #: Whether all decisions up to here are those of the recorded journal; None where there is no journal.
    same: bool | None


def decided_again(recording: Recording, interval: int | None) -> DecidedAgain:
    """The last decision of *recording*, or the last one that is not after *interval*, epoch ms, by its own settings.

    TrimtabError where there is none, or the recording cannot be read.
    """
    settings, cluster = recording.manifest.settings, recording.manifest.cluster
    policy = settings.policy(cluster)
    again = LogReplay(recording, settings, policy, begin_of(recording))
    replay = Replay(recording, settings, policy)
    with long_work("replaying, records", again.size(), pieces) as tell:
        for snapshot in again.snapshots(tell):
            if interval is not None and snapshot.interval > interval:
                break
            replay.decide([snapshot])
    if replay.newest is None:
        when = "" if interval is None else f" at or before {utc(interval)}"
        raise TrimtabError(f"{recording.where} has no decision{when}: `trimtab what-if` shows what it spans")
    comparison = replay.ended(None)
    return DecidedAgain(replay.newest, policy, comparison.comparison.first is None if comparison.has_journal else None)
