"""Every error trimtab raises on purpose, one short tree.

An error names the thing, the value and what to do.  Nothing to decide is a
:class:`~controller.model.decision.Reason`, never an exception.
"""


class TrimtabError(Exception):
    """Base of all errors raised on purpose; the CLI prints its text and exits with ``exit_code``."""

    exit_code = 1


class SettingsError(TrimtabError):
    """A setting is unknown, or its value cannot mean anything."""

    exit_code = 2


class ViewError(TrimtabError):
    """A cluster that was described by hand contradicts itself, or a number in it cannot be."""


class AccessDeniedError(TrimtabError):
    """A server refuses our credentials, or does not permit what we ask for: trying again does not help."""

    exit_code = 77  # EX_NOPERM


class WireError(TrimtabError):
    """A record does not hold what its type promises; ``reason`` is the dead letter's word for it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class StateError(TrimtabError):
    """Stored state cannot be used: another shard count, an unknown version, a broken invariant."""


class LogOfflineError(TrimtabError):
    """A part of the log that is needed cannot be written to for now; nothing was written."""


class JournalError(TrimtabError):
    """The journal could not be read or written; nothing was issued."""


class EntryTooLargeError(JournalError):
    """A decision has more commands than a journal entry can hold; nothing was written."""


class JournalLostError(JournalError):
    """The journal is empty, and Spark's checkpoint says that it was not: a person has to decide what to do."""

    exit_code = 2


class ControlsUnreachableError(TrimtabError):
    """The operator's controls cannot be read or written now."""


class ControlsCorruptError(TrimtabError):
    """The stored controls make no sense; nothing may be issued until somebody sets them again."""


class StalledError(TrimtabError):
    """A query makes no progress though there is something to read."""

    exit_code = 70  # EX_SOFTWARE: the service manager restarts us


class LeadershipLostError(TrimtabError):
    """This process no longer leads: the batch must not be committed."""

    exit_code = 75  # EX_TEMPFAIL: the service manager restarts us
