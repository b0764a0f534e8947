"""Options of broker.conf that are misspelt: one letter off an option that trimtab knows.

Brokers have hundreds of options that trimtab does not know; those are no mistake.  Pulsar itself ignores a misspelt
option, and works with the default.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from controller.model.errors import SettingsError

#: Options of Pulsar do not begin so.
_OURS: Final = "trimtab"


def refuse_misspelt(conf: Mapping[str, str], known: Collection[str]) -> None:
    """Raise SettingsError where a key of *conf* is none of the *known* ones, and one letter off one of them.

    A letter too many or too few, another letter, two letters in the wrong order, and capitals count; also every key
    that begins with trimtab.
    """
    unknown = [key for key in conf if key not in known]
    if not unknown:
        return
    by_variant = {variant: name for name in sorted(known) for variant in _variants(name)}
    flaws = []
    for key in unknown:
        suggestion = next((by_variant[each] for each in _variants(key) if each in by_variant), "")
        if not suggestion and key.startswith(_OURS):
            suggestion = next(iter(get_close_matches(key, known, n=1)), "")
            flaws.append(f"{key}: no such option of trimtab{f'; did you mean {suggestion}?' if suggestion else ''}")
        elif suggestion:
            flaws.append(f"{key}: no such option; did you mean {suggestion}?")
    if flaws:
        raise SettingsError("; ".join(flaws))


def _variants(name: str) -> Iterator[str]:
    """*name* in small letters, as it is and without one of its letters: names one letter apart share one of these."""
    small = name.lower()
    yield small
    for at in range(len(small)):
        yield small[:at] + small[at + 1 :]


def keys_of(classes: Iterable[type]) -> frozenset[str]:
    """The keys of broker.conf that *classes*, dataclasses with options, read; also their older names."""
    keys: set[str] = set()
    for cls in classes:
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            if "broker_conf" in field.metadata:
                keys |= {field.metadata["broker_conf"], *field.metadata["aliases"]}
    return frozenset(keys)
