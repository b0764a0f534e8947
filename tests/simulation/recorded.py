"""Plays recorded batches of a real query (tests/query_recording.py) in the model of Spark, and says what it cannot do.

What the real query chose is taken from the recording: where a batch ends, and where the process died.  All else is the
model's: which batch is next, whether it runs again, with which offsets, from which state, and what is committed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from controller.aggregate.places import Span, spans
from controller.cycle import Policy
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import LogRecord
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.rows import Located
from tests.query_recorder import content_of
from tests.query_recording import BROKER_CONF, CONF, STRIDE
from tests.simulation.loop import Simulation
from tests.simulation.processes import fold_options
from tests.simulation.query import RETAINED, TOPICS, Checkpoint, Decoder, Query
from tests.simulation.world import World


class RefusedError(Exception):
    """The model cannot do what was recorded."""


class _DiedError(Exception):
    """The life ends here."""


def refusal(recording: Mapping[str, Any], folder: Path) -> str:
    """Why the model cannot produce *recording*, "" if it can; *folder*: for its settings."""
    settings = _settings(folder)
    policy = read_policy(settings)
    served, files = _served(recording), _is_folder(recording)
    checkpoint = Checkpoint(shards=settings.intervals.shards)
    options = fold_options(settings, policy, files=files)
    for number, life in enumerate(recording["lives"]):
        query = _RecordedQuery(life, World(Simulation(0)), checkpoint, MemoryLog(served), _decoder(recording, policy),
                               policy, options)  # fmt: skip
        query.files = files
        try:
            query.live()
            _compare(life, checkpoint)
        except RefusedError as error:
            return f"life {number + 1}: {error}"
    return ""


def repeated(recording: Mapping[str, Any]) -> dict[str, list[int]]:
    """How far a batch came in a life that did not commit it -> the batches."""
    found = dict[str, list[int]]()
    for life in recording["lives"]:
        reached = {note["batch"]: note["place"] for note in life["notes"] if note["place"] != "committed"}
        begun = [*map(int, life["offsets"])]
        for batch in set(begun) - set(life["commits"]):
            found.setdefault(reached.get(batch, "offsets"), []).append(batch)
    return found


def _settings(folder: Path) -> Settings:
    (folder / "broker.conf").write_text(BROKER_CONF, encoding="utf-8")
    log = '{kind = "folder", folder.path = "log"}'
    (folder / "trimtab.toml").write_text(CONF.format(log=log), encoding="utf-8")
    return read_settings(folder / "trimtab.toml")


def _is_folder(recording: Mapping[str, Any]) -> bool:
    return any(len(record) > 3 for parts in recording["topics"].values() for part in parts for record in part)


def _served(recording: Mapping[str, Any]) -> MemoryServer:
    """The log with the records of *recording*."""
    server = MemoryServer(partitions=0)
    for topic, partitions in recording["topics"].items():
        server.add_partitions(topic, len(partitions))
        for number, records in enumerate(partitions):
            here = server.topic(topic)[number]
            here.records = [LogRecord(number, at, b"", value.encode(), ms, {}) for at, ms, value, *_ in records]
            here.next = records[-1][0] + 1 if records else 0
    return server


class _FileDecoder(Decoder):
    """The decoder of a folder log: a record lies in a line of a file."""

    def __init__(self, cluster: str, period_ms: int, names: Mapping[tuple[int, int], str]) -> None:
        super().__init__(cluster, period_ms)
        self._names = names

    def located(self, source: int, records: Sequence[LogRecord]) -> tuple[list[Located], list[Span]]:
        """See Decoder."""
        good, bad = list[Located](), list[tuple[int, int, str, int]]()
        for record in records:
            file, line = self._names[source, record.position], record.position % STRIDE
            more, refused = super().located(source, [record])
            good += [replace(each, file=file, offset=line) for each in more]
            bad += [(source, 0, file, line) for _ in refused]
        return good, spans(bad)


def _decoder(recording: Mapping[str, Any], policy: Policy) -> Decoder:
    if not _is_folder(recording):
        return Decoder(policy.cluster, policy.period_ms)
    names = {(source, at): name for source, topic in TOPICS.items() for at, _, _, name in recording["topics"][topic][0]}
    return _FileDecoder(policy.cluster, policy.period_ms, names)


class _RecordedQuery(Query):
    """The model with the choices of one life."""

    def __init__(self, life: Mapping[str, Any], *given: Any) -> None:
        super().__init__(*given)
        self._offsets = {
            int(batch): {(source, partition): end for source, partition, end in ends}
            for batch, ends in life["offsets"].items()
        }
        self._log_end = {(source, partition): end for source, partition, end in life["ends"]}
        self._notes, self._commits = [note for note in life["notes"] if note["place"] != "committed"], life["commits"]
        self._at = 0

    def live(self) -> None:
        """Run batches until all that was noted has happened.  RefusedError."""
        try:
            while self._at < len(self._notes) or self._next in self._offsets:
                if not self.batch(self._take):
                    raise RefusedError(f"nothing can be read, and {self._notes[self._at]} is noted")
        except _DiedError:
            if self._at < len(self._notes):
                raise RefusedError(f"it has ended, and {self._notes[self._at]} is noted") from None

    def _is_open(self, before: Any) -> bool:
        return True

    def _ends(self, before: Any) -> Any:
        ends = self._offsets.get(self._next)
        if ends is None:
            raise RefusedError(f"batch {self._next} is next, and {self._notes[self._at]} is noted")
        for place, end in ends.items():
            if not before.get(place, 0) <= end <= self._log_end.get(place, 0):
                raise RefusedError(f"batch {self._next} reads {place} up to {end}, after {before.get(place, 0)}")
        if missing := before.keys() - ends.keys():
            raise RefusedError(f"batch {self._next} does not say how far {missing} is read")
        if ends == before:
            raise RefusedError(f"batch {self._next} has no records")
        return ends

    def _take(self, batch: Any, number: int) -> None:
        self._is_noted("begun", number)
        content = content_of(batch.toArrow().to_pylist())
        noted = self._is_noted("read", number)
        for name, value in content.items():
            if noted[name] != value:
                raise RefusedError(f"batch {number} gives the {name} {noted[name]}, and by the model {value}")
        self._is_noted("decided", number)

    def _is_noted(self, place: str, number: int) -> Mapping[str, Any]:
        if self._at == len(self._notes):
            raise _DiedError
        note = self._notes[self._at]
        if (note["place"], note["batch"]) != (place, number):
            raise RefusedError(f"batch {number} is {place} next, and {note} is noted")
        self._at += 1
        return dict(note)

    def _purge(self, number: int) -> None:
        """Nothing: Spark purges beside its batches, so a recording may have more (see _compare)."""

    def _file(self, name: str, write: Any) -> None:
        if name == "commit" and self._next not in self._commits:
            raise _DiedError
        write()


def _compare(life: Mapping[str, Any], checkpoint: Checkpoint) -> None:
    """RefusedError where the files of *life* are not those of the model's *checkpoint*."""
    offsets = {
        str(batch): sorted([*place, end] for place, end in ends.items()) for batch, ends in checkpoint.offsets.items()
    }
    first = max(checkpoint.commits, default=0) - RETAINED
    for what, recorded, model in (
        ("offsets", life["offsets"], offsets),
        ("commits", {str(number): 0 for number in life["commits"]}, {str(number): 0 for number in checkpoint.commits}),
    ):
        needed = {number: ends for number, ends in model.items() if int(number) >= first}
        if not needed.items() <= recorded.items() <= model.items():
            raise RefusedError(f"its {what} are {_difference(recorded, needed)}")
    committed, begun = max(checkpoint.commits, default=-1), max(checkpoint.offsets, default=-1)
    for version in life["states"]:
        if not committed + 1 <= version <= begun + 1:
            raise RefusedError(f"batch {committed} is committed and {begun} begun, and a state has version {version}")


def _difference(recorded: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    pairs = ((recorded, model), (model, recorded))
    only, missing = ({key: one[key] for key in one if one[key] != other.get(key)} for one, other in pairs)
    return f"{only}, and by the model {missing}"
