"""``trimtab replay``: decide again what a recording or a log holds, and compare with what the live run decided."""

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.long_work import long_work
from controller.adapters.recordings.manifest import KnownBeginning, recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.cli.shared.answers import show
from controller.cli.shared.console import DEFAULT_CONF, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.option_groups import ScenarioPulsarOption
from controller.log.factory import records_in
from controller.offline.record_texts import begin_of
from controller.offline.recording import refuse_other_clusters
from controller.offline.replay import LogReplay, Replay, Replayed, batches
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import read_settings
from controller.wire.answers.recordings import ReplayedAnswer
from controller.wire.readable import counted, utc

_DIFFERENT: Final = 1
#: Of records that one micro-batch of Spark reads: an interval of a large cluster, or a dozen of a small one.
_BATCH_BYTES: Final = 32 << 20

_Log: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="RECORDING",
        help="The folder of a recording, or of a log.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]
_Conf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Settings to decide with.", show_default=f"those of the recording; of a log in a folder {DEFAULT_CONF}"
    ),
]


def replay_log(
    recording: _Log,
    fast: Annotated[bool, typer.Option("--fast", help="Without Spark: the same fold and the same engine.")] = False,
    conf: _Conf = None,
    pulsar: ScenarioPulsarOption = None,
    as_json: Annotated[bool, json_option("answer.replay")] = False,
) -> None:
    """Decide every interval of a recording again, and compare each entry of the journal with the live run's.

    Nothing is issued and nothing is written.  The controls of an interval (mode, pause, age) are those in the
    live run's journal.

    Exit codes: 0 all entries are equal, byte for byte, or there is no journal to compare with; 1 one differs, or there
    is no interval; 2 an option or the settings are invalid.
    """
    log = records_in(recording)
    if conf is None and isinstance(log, Recording):
        settings = log.manifest.settings.as_version(pulsar)
        policy = settings.policy(log.manifest.cluster)
    else:
        of_file = read_settings(conf or DEFAULT_CONF).as_version(pulsar)
        refuse_other_clusters(log, of_file.cluster.name)
        settings, policy = recorded_settings(of_file), read_policy(of_file)
    again = LogReplay(log, settings, policy, begin_of(log))
    replayed = again.run() if fast else _on_spark(again, Replay(log, settings, policy))
    known = log.manifest.known_before if isinstance(log, Recording) else None
    answer = _answer(policy.cluster, replayed, known)
    show(answer, lambda out: _print(out, answer), as_json=as_json)
    if answer.first_difference is not None:
        raise typer.Exit(_DIFFERENT)


def _on_spark(again: LogReplay, replay: Replay) -> Replayed:
    """The same by the streaming query."""
    with long_work("loading Spark's client"):
        from streaming.recorded import replay_options, run_on_files, write_files  # here: importing Spark takes seconds
        from streaming.spark.session import start_session
    with scratch_folder("trimtab-replay-") as work:
        with long_work("unpacking the records"):
            write_files(batches(again.records(), _BATCH_BYTES), work / "records")
        spark = start_session("local[*]", 2, {}, (), work / "spark-logs")
        try:
            with long_work("replaying, intervals"):
                run_on_files(spark, work, replay_options(again.settings, again.policy), replay.decide)
        finally:
            spark.stop()
    return replay.ended(None)


def _answer(cluster: str, replayed: Replayed, known: KnownBeginning | None) -> ReplayedAnswer:
    comparison = replayed.comparison
    notes = []
    if known is not None:
        notes.append(_of_known(known))
    elif replayed.begins_midway:
        notes.append(
            "the recording begins in the middle of a run, without the averages and states of that time: the"
            " controller's averages began earlier, so entries differ until the replay's are as old; `trimtab record"
            " --from` stores them"
        )
    if not replayed.has_journal:
        notes.append("there is no journal of this cluster, so nothing was compared")
    return ReplayedAnswer.from_object(
        comparison,
        cluster=cluster,
        refused=replayed.refused,
        last=replayed.last,
        first_difference=comparison.first,
        notes=notes,
    )


def _of_known(known: KnownBeginning) -> str:
    """What a recording has of the time before it, and what not."""
    text = (
        "the recording begins with averages and states from"
        f" {counted(known.intervals, 'interval')} before it, the first {utc(known.first_ms)}"
    )
    if known.undescribed:
        text += f"; of {counted(known.undescribed, 'namespace')} with bundles the log had no state"
    return text


def _print(out: Console, answer: ReplayedAnswer) -> None:
    for note in answer.notes:
        print_line(out, note)
    if answer.refused:
        print_line(out, f"{counted(answer.refused, 'record')} could not be used")
    print_line(out, f"{counted(answer.decided, 'interval')} decided, {counted(answer.commands, 'command')}")
    if answer.compared:
        print_line(out, f"{answer.equal} of {counted(answer.compared, 'entry', 'entries')} equal, byte for byte")
    if answer.first_difference is not None:
        print_line(out, f"first difference: {utc(answer.first_difference.interval)}: {answer.first_difference.what}")
