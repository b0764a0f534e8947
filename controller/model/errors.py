"""All errors that trimtab raises itself.

An error names the thing, the value and what to do.  "Nothing to do" is no error but a
:class:`~controller.model.decision.Reason`.
"""


class TrimtabError(Exception):
    """Base of trimtab's own errors; the CLI prints the text and exits with ``exit_code``."""

    exit_code = 1


class SettingsError(TrimtabError):
    """A setting is unknown, or its value is invalid."""

    exit_code = 2


class AnotherClusterError(SettingsError):
    """What the settings name belongs to another cluster."""


class ViewError(TrimtabError):
    """A ClusterView that was built by hand is inconsistent, or holds an impossible number."""


class NothingFoundError(TrimtabError):
    """What was asked about is not there, and everything that was needed to say so was read."""


class PlanRefusedError(TrimtabError):
    """A plan's file is no plan, was changed, or says something that is not so."""

    exit_code = 2


class ProposalRefusedError(TrimtabError):
    """A proposal, or an approval of one, is refused; the text says why, and what to do."""

    exit_code = 2


class AccessDeniedError(TrimtabError):
    """A server refuses our credentials, or we lack a right.  A retry helps only after somebody has mended that."""

    exit_code = 77  # EX_NOPERM


class WireError(TrimtabError):
    """A record does not match its schema; ``reason`` is the reason that its dead letter gives."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class StateError(TrimtabError):
    """Stored state cannot be used: it has another number of shards, an unknown version, or it is damaged."""

    exit_code = 2


class LogOfflineError(TrimtabError):
    """A partition of the log that is needed is offline; nothing was written."""


class JournalError(TrimtabError):
    """The journal could not be read or written; nothing was issued."""


class DamagedJournalError(JournalError):
    """A record of the journal makes no sense, or is gone although later ones need it.  A person must restore it."""

    exit_code = 2


class NewerJournalError(DamagedJournalError):
    """A later release of trimtab wrote the journal, in a version that this one does not know."""


class StateVersionError(StateError):
    """Another release of trimtab wrote the state in the checkpoint, in a version that this one does not read."""


class EntryTooLargeError(JournalError):
    """A decision has more commands than a journal entry can hold; nothing was written."""


class JournalLostError(JournalError):
    """The journal is empty, but Spark's checkpoint shows that it had entries.  A person must decide what to do."""

    exit_code = 2


class ControlsUnreachableError(TrimtabError):
    """The operator's controls cannot be read or written now."""


class ControlsCorruptError(TrimtabError):
    """The stored controls make no sense; nothing may be issued until somebody sets them again."""


class StrategyError(TrimtabError):
    """A strategy raised an error, or answered what cannot be so; nothing was issued.  ``flaw`` says what.

    PlanRequest again about the same interval it fails again: a person must mend it.
    """

    exit_code = 2

    def __init__(self, strategy: str, flaw: str, interval: str = "") -> None:
        """*interval*: T in words; "" where it was not asked about an interval."""
        where = f"interval {interval}: " if interval else ""
        super().__init__(
            f"{where}strategy {strategy}: {flaw}.  Nothing is issued in this interval: mend the strategy"
            " (report it where it is one of trimtab's), or set another one in broker.conf, and start again"
        )
        self.strategy, self.flaw = strategy, flaw


class StalledError(TrimtabError):
    """A query makes no progress although there is data to read."""

    exit_code = 70  # EX_SOFTWARE: the service manager restarts us


class LeadershipLostError(TrimtabError):
    """This process lost leadership: the batch must not be committed."""

    exit_code = 75  # EX_TEMPFAIL: the service manager restarts us
