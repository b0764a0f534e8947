"""Errors of trimtab that come back from Spark as text: those of its Python workers, and of sources in Python."""

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


def own_error(told: str) -> TrimtabError | None:
    """The error of ours that is in *told*, the text of an error of Spark's; None where there is none.

    Of those that led to each other the last one, which says what to do.
    """
    found = None
    for match in _OURS.finditer(told):
        if found is not None and not _LED_TO.search(told, found.end(), match.start()):
            break  # another trace
        found = match
    if found is None:
        return None
    kind, text = found.groups()
    return _FOR_A_PERSON.get(kind, TrimtabError)(text)
