"""Errors that Spark returns as text: trimtab's own, from Python workers and sources, and the causes of others."""

import re
from typing import Final

from controller.model.errors import AccessDeniedError, SettingsError, StateError, TrimtabError

#: An error of ours, in the trace that Spark makes of it.
_OURS: Final = re.compile(r"^(?:controller\.[\w.]+)\.(\w+): (.+)$", re.MULTILINE)
#: Between an error and the one that was raised because of it: Python prints the last one last.
_LED_TO: Final = re.compile(r"^(?:The above exception was the direct|During handling of the above exc)", re.MULTILINE)
#: Those whose exit code says that a person is needed; of all others a restart may help.
_FOR_A_PERSON: Final[dict[str, type[TrimtabError]]] = {
    kind.__name__: kind for kind in (AccessDeniedError, SettingsError, StateError)
}

#: In a trace of Java: what led to the error above it, and how much of that is told.
_CAUSE: Final = re.compile(r"^Caused by: (.{1,300})", re.MULTILINE)
#: Spark's errors for files of its checkpoint that are truncated, missing, or not JSON.
_DAMAGED: Final = re.compile(
    r"Incomplete log file|CHECKPOINT_MISSING_METADATA_FILE|MISSING_STATE_DIRECTORY|batch \d+ doesn't exist"
    r"|StreamReadFeature|EOFException: Stream ended prematurely"
)


def own_error(trace: str) -> TrimtabError | None:
    """The error of ours that is in *trace*, the text of an error of Spark's; None where there is none.

    Of those that led to each other the last one, which says what to do.
    """
    last = None
    for match in _OURS.finditer(trace):
        if last is not None and not _LED_TO.search(trace, last.end(), match.start()):
            break  # another trace
        last = match
    if last is None:
        return None
    kind, text = last.groups()
    return _FOR_A_PERSON.get(kind, TrimtabError)(text)


def damaged_checkpoint(trace: str, path: str) -> TrimtabError | None:
    """The error where *trace*, the text of an error of Spark's, says that the checkpoint at *path* is damaged.

    As after a power cut, or by somebody's hand.  Started again, the query would end again.
    """
    if not _DAMAGED.search(trace):
        return None
    return StateError(
        f"checkpoint.path = {path!r}: it is damaged: restore it, or move all of it away and start again; averages begin"
        f" anew then, and no interval is decided twice.  Spark says: {with_cause(trace)}"
    )


def with_cause(trace: str) -> str:
    """*trace*, the text of an error of Spark's, behind what led to it in the end, where its trace tells that.

    Spark's own words often say no more than that a job was aborted.
    """
    causes: list[str] = _CAUSE.findall(trace)
    return f"{causes[-1]}; {trace}" if causes else trace
