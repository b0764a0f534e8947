"""The log in a folder: no server, one machine.  Each topic is one partition, a folder of files that never change.

journal/<n>.jsonl   ticks/<n>.jsonl   commands/<n>.jsonl    see controller.log.files.exclusive
metrics/<T>-<n>.jsonl   results/<T>-<n>.jsonl               see controller.adapters.folder.line_files
dead_letters/<batch>-<part>-<which>.jsonl
executor/position.json                                      see controller.log.files.claims
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from controller.adapters.disk import files
from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.folder import names
from controller.adapters.folder.disk_errors import disk_errors
from controller.adapters.folder.line_files import LineFiles, as_lines, refuse_line_breaks
from controller.log.files.claims import FolderClaims
from controller.log.files.exclusive import ExclusiveFiles, contents, create_next
from controller.log.files.listing import NUMBERED, Listing, interval_of
from controller.log.files.reader import FolderReader, begin_of
from controller.log.followed import FollowedScope, Numbered
from controller.log.port import OLDEST, Ends, Fenced, LogRecord, LogTopic, Out, Position, Scope, Start
from controller.model.errors import DamagedJournalError


class FolderLog:
    """Log in *folder*, which is one cluster's."""

    def __init__(self, folder: Path, *, cluster: str | None) -> None:
        """AnotherClusterError where *folder* is another cluster's; DamagedJournalError where its form is an old one.

        *cluster*: None for readers of any cluster's log.
        """
        self._folder, self._cluster = folder, cluster
        with disk_errors():
            if cluster is not None:
                refuse_another(folder, cluster, key=names.LOG_PATH)
            old = names.old_journal_file(folder)
        if old is not None:
            raise DamagedJournalError(
                f"{old}: an earlier version of trimtab wrote this log: convert it with `scripts/convert folder {folder}"
                " NEW_FOLDER` of the source, or give the cluster a new folder, and a new checkpoint.path"
            )
        self._writers: dict[LogTopic, LineFiles] = {}
        self._listings: dict[LogTopic, Listing] = {}
        #: What this process took over last under a name: the partition that decides.
        self._decides: dict[str, ExclusiveFiles] = {}

    def name(self, topic: LogTopic) -> str:
        """See Log."""
        return str(self._folder / topic)

    def place(self, topic: LogTopic, partition: int, position: Position) -> str:  # noqa: ARG002
        """See Log."""
        listing = self._listings.get(topic)  # as it was listed last: a journal's reader asks for each record
        return (listing or self._listed(topic)).place(position)

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:  # noqa: ARG002
        """See Log."""
        self._claim()
        with disk_errors():
            for topic in topics:
                (self._folder / topic).mkdir(parents=True, exist_ok=True)
        return dict.fromkeys(topics, 1)

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:  # noqa: ARG002
        """See Log.  Letters whose *name* is given are stored once."""
        for topic, group in groupby(outs, key=lambda out: out.topic):
            self.append_to(topic, [*group], name=name)

    def append_to(
        self, topic: LogTopic, outs: Sequence[Out], *, name: str = "", holder: ExclusiveFiles | None = None
    ) -> None:
        """Append *outs*, all of *topic*.  *holder*: its lost lock raises LeadershipLostError."""
        self._claim()
        values = [out.value for out in outs]
        with disk_errors():
            if topic in NUMBERED:
                for content in contents(topic, outs):
                    create_next(self._folder, topic, content)
            elif name:
                refuse_line_breaks(values)
                self.partitions(topic)
                files.replace(self._folder / topic / f"{name}.jsonl", as_lines(values))
            else:
                if topic not in self._writers:
                    self.partitions(topic)
                writer = self._writers.setdefault(topic, LineFiles(self._folder / topic))
                check = (lambda: None) if holder is None else holder.check
                # A tick stands alone in what is appended at once, and what ticks an interval has a file of its own.
                for interval, group in groupby(outs, key=lambda out: interval_of(out.headers)):
                    writer.append([out.value for out in group], interval, check)

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> FolderReader:  # noqa: ARG002
        """See Log."""
        return FolderReader(self._listed(topic), start)

    def read_backwards(
        self,
        topic: LogTopic,
        partition: int,  # noqa: ARG002
        before: Position | None,
        about: int,
    ) -> Sequence[LogRecord]:
        """See Log."""
        return self._listed(topic).read_backwards(before, about)

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Mapping[int, Ends]:
        """See Log."""
        if not (self._folder / topic).is_dir():
            return {}
        listing = self._listed(topic)
        start = OLDEST if since_ms is None else Start(since_ms=since_ms)
        return {0: Ends(max(listing.begin, begin_of(listing, start)), listing.end)}

    def delete_before(self, topic: LogTopic, partition: int, first: Position) -> None:
        """See Log.  Retention deletes old files (controller.adapters.folder.retention)."""

    def counted_from(self, topic: LogTopic) -> str:
        """See Log.  The oldest file; those that a topic has numbers for keep them."""
        return "" if topic in NUMBERED else self._listed(topic).oldest

    def fence(self, scope: Scope) -> Fenced:
        """See Log."""
        return FollowedScope(self, scope)

    def claims(self, group: str) -> FolderClaims:
        """See Log."""
        self._claim()
        return FolderClaims(self, self._listed("commands"), self._folder / "executor", name=group)

    def close(self) -> None:
        """See Log."""

    def take_over(self, name: str, topic: LogTopic, partition: int, *, mark: bytes | None) -> ExclusiveFiles:  # noqa: ARG002
        """See Primitives.  Readers find the epoch without a mark's value: files have no partitions that are added."""
        self._claim()
        if topic in ("journal", "ticks"):
            self._decides[name] = ExclusiveFiles(self._folder, topic)
            return self._decides[name]
        if name in self._decides:
            self._decides[name].check()  # else who holds the scope by now would lose this topic
        return ExclusiveFiles(self._folder, topic)

    def once(self, name: str, targets: Sequence[tuple[LogTopic, int]]) -> "FolderOnce":  # noqa: ARG002
        """See Primitives."""
        return FolderOnce(self, self._decides.get(name))

    def partition_of(self, topic: LogTopic, key: bytes, partitions: int) -> int:  # noqa: ARG002
        """See Primitives."""
        return 0

    def _listed(self, topic: LogTopic) -> Listing:
        """The files of *topic*, listed now.  The numbers that files were given stay while this object lives."""
        listing = self._listings.setdefault(topic, Listing(self._folder, topic))
        listing.refresh()
        return listing

    def _claim(self) -> None:
        """Make the folder the cluster's."""
        if self._cluster is not None:
            with disk_errors():
                claim(self._folder, self._cluster, key=names.LOG_PATH)


class FolderOnce:
    """Once.  A tick is stored once, by the name of its file; of others who takes over reads which are there."""

    def __init__(self, log: FolderLog, holder: ExclusiveFiles | None) -> None:
        self._log, self._holder = log, holder

    def append(self, numbered: Sequence[Numbered]) -> None:
        """See Once."""
        for topic, group in groupby((each.out for each in numbered), key=lambda out: out.topic):
            self._log.append_to(topic, [*group], holder=self._holder)

    def forgot(self, topic: LogTopic, partition: int) -> bool:  # noqa: ARG002
        """See Once.  No number is stored."""
        return True

    def close(self) -> None:
        """See Once."""
