"""The answers of ``trimtab bench``, a line for each measurement.  Their keys are in snake_case."""

from typing import Annotated, Final

from pydantic import ConfigDict

from controller.wire.answers.base import JsonAnswer, Shown


class _Measured(JsonAnswer):
    model_config = ConfigDict(alias_generator=None)


class TimingAnswer(_Measured):
    """``trimtab bench decisions --json``: medians, in ms."""

    cluster: str
    kind: str
    subject: Annotated[str, Shown(heading="what")]
    ms: Annotated[float, Shown(form=",.3f")]
    chosen: int
    java_ms: Annotated[float | None, Shown(heading="Pulsar ms", form=",.2f")]
    """Of Pulsar's own class, with --java."""
    java_chosen: Annotated[int | None, Shown(heading="Pulsar chose", form=",")]
    ratio: Annotated[float | None, Shown(form=".3f")]
    """How many times as long as Pulsar's class."""


class SlopeAnswer(_Measured):
    """``trimtab bench decisions --slope --json``: log-log slopes, 1 is linear."""

    cluster: str
    subject: Annotated[str, Shown(heading="what")]
    time: Annotated[float, Shown(form=".2f")]
    memory: Annotated[float, Shown(form=".2f")]
    ms: list[float]
    """At each of the sizes."""
    peak: list[int]
    """Bytes at each of the sizes."""


class OverloadAnswer(_Measured):
    """``trimtab bench decisions --overloaded --json``: one interval, times in seconds."""

    cluster: str
    shedder: Annotated[str, Shown(heading="what")]
    interval: int
    view: float
    decision: float
    encoding: float
    verdicts_file: float
    commands: int
    held_back: int
    verdicts: int
    entry_bytes: int
    verdicts_bytes: int


class StagesAnswer(_Measured):
    """What Spark's micro-batches of an interval did; means over the intervals."""

    batches: float
    records: float
    plan_seconds: float
    """The log's end, planning, and the checkpoint's logs of offsets and commits; as a clock shows them."""
    read_seconds: float
    """Reading the log, its decode, and the rows written for the shuffle."""
    fold_seconds: float
    """Rows to Python, the fold, state read and written."""
    python_seconds: float
    """Of that, in the Python workers, added up over tasks."""
    commit_seconds: float
    """Of that, writing state, added up over tasks."""
    decide_seconds: float
    """Snapshots to the driver, decision, journal, dead letters."""
    shuffled_rows: float
    """Rows that decode hands on to the shards."""
    shuffled_megabytes: float
    """These rows, compressed."""
    put_megabytes: float
    """State that the fold gives to the state store."""
    driver_megabytes: float
    """Snapshots, and whatever else reaches the driver from tasks."""


class PipelineAnswer(_Measured):
    """``trimtab bench pipeline --json``: medians over the runs."""

    form: Annotated[str, Shown(heading="records")]
    """Of the records."""
    topics: int
    bundles: int
    brokers: int
    megabytes_per_interval: Annotated[float, Shown(heading="MB", form=",")]
    topics_per_second: Annotated[float, Shown(heading="topics/s", form=",")]
    seconds_per_interval: Annotated[float, Shown(heading="s an interval", form=",")]
    floor_seconds: Annotated[float, Shown(heading="floor s", form=",")]
    """Of only reading and parsing."""
    ratio_to_floor: float
    """Of the runs' own quotients: floor and query take turns, so changes in the machine's speed cancel out."""
    lowest_ratio: Annotated[float, Shown(heading="lowest", form=",")]
    highest_ratio: Annotated[float, Shown(heading="highest", form=",")]
    master: str
    """Where Spark ran."""
    partitions: int
    """Of the topics."""
    cpu_seconds: Annotated[float, Shown(heading="CPU s", form=",")]
    """Of Spark's JVM and all that it starts, in an interval; without what publishes, and without the log's servers."""
    stages: StagesAnswer


class ArrivalAnswer(_Measured):
    """``trimtab bench pipeline --as-it-arrives --json``: one interval of a running controller, medians over them."""

    form: Annotated[str, Shown(heading="records")]
    """Of the records."""
    topics: int
    bundles: int
    brokers: int
    period_seconds: int
    intervals: int
    """How many were measured."""
    cpu_seconds: Annotated[float, Shown(heading="CPU s")]
    """Of the controller and all that it starts."""
    lowest_cpu_seconds: Annotated[float, Shown(heading="lowest")]
    highest_cpu_seconds: Annotated[float, Shown(heading="highest")]
    delay_seconds: Annotated[float, Shown(heading="delay s")]
    """From the tick to the decision in the journal."""
    longest_delay_seconds: Annotated[float, Shown(heading="longest")]
    state_megabytes: Annotated[float, Shown(heading="state MB")]
    """Written to the checkpoint in an interval."""
    resident_megabytes: Annotated[float, Shown(heading="memory MB")]
    """The maximum at the end of an interval."""
    growth_megabytes: Annotated[float, Shown(heading="growth MB")]
    """The increase from the first to the last fifth of the intervals; 0 for fewer than five."""
    idle_cores: float
    """Cores that the controller uses while no records arrive."""
    stages: StagesAnswer


class RecordingAnswer(_Measured):
    """``trimtab bench recording --json``: the recording of a modelled cluster's log, and its replay without Spark."""

    brokers: int
    bundles: int
    topics: int
    intervals: int
    log_megabytes: Annotated[float, Shown(heading="log MB", form=",.1f")]
    """Of the log's metrics, in a folder."""
    recording_megabytes: Annotated[float, Shown(heading="MB", form=",.1f")]
    commands: int
    """That the live run issued."""
    record_cpu_seconds: Annotated[float, Shown(heading="record CPU s", form=",.1f")]
    replay_cpu_seconds: Annotated[float, Shown(heading="replay CPU s", form=",.1f")]
    """Of all threads."""
    replay_seconds: Annotated[float, Shown(heading="replay s", form=",.1f")]
    """By the clock."""
    equal: int
    """Entries of the journal that the replay came to, byte for byte."""


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.bench_arrival": ArrivalAnswer,
    "answer.bench_decisions": TimingAnswer,
    "answer.bench_overloaded": OverloadAnswer,
    "answer.bench_pipeline": PipelineAnswer,
    "answer.bench_recording": RecordingAnswer,
    "answer.bench_slope": SlopeAnswer,
}
