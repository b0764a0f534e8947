"""Names of Pulsar in the settings.  One that nothing can have is refused: it would match nothing, without a word."""

import re
from typing import Final

from controller.model.errors import TrimtabError
from controller.model.name_patterns import ANY
from controller.model.names import LONGEST_NAME, parse_bundle
from controller.model.topic_name import is_named_entity

#: A range as people write it: two hexadecimal numbers, with or without 0x, and something between them.
_RANGE: Final = re.compile(r"(?:0x)?([0-9a-f]{1,8})[^0-9a-fx](?:0x)?([0-9a-f]{1,8})", re.ASCII | re.IGNORECASE)
#: The third part of a name, or the fourth, is meant as a range.  "2024-01" is not: a namespace may be called so.
_MEANT_AS_RANGE: Final = re.compile(r"0x.*|[0-9a-f]{8}.[0-9a-f]{8}", re.ASCII | re.IGNORECASE)
#: So is the second, where the tenant is forgotten.  "20240101-20240131" is not: a namespace may be called so.
_MEANT_WITHOUT_TENANT: Final = re.compile(r"0x[0-9a-f]{1,8}_0x[0-9a-f]{1,8}", re.ASCII | re.IGNORECASE)
_NAMESPACE: Final = "expected tenant/namespace, or a pattern such as tenant/* or tenant/prod-*"
_FORMS: Final = f"{_NAMESPACE}, or tenant/namespace/0xLLLLLLLL_0xUUUUUUUU for a bundle"
#: tenant/namespace; and tenant/cluster/namespace, as Pulsar's first version had it.
_NAMESPACE_PARTS: Final = (2, 3)


def namespace_or_bundle(name: str) -> str:
    """*name* as Pulsar writes it: of a namespace, or of a bundle, whose range it has in lower case.  Or a pattern.

    ValueError where neither can have that name: it says what is wrong, and what may be meant.
    """
    namespace, _, last = name.rpartition("/")
    meant_as_range = _MEANT_AS_RANGE if "/" in namespace else _MEANT_WITHOUT_TENANT
    if namespace and meant_as_range.fullmatch(last):
        return _bundle(namespace, last)
    _check_namespace(name)
    return name


def is_bundle(name: str) -> bool:
    """Whether *name*, of a namespace or a bundle, is that of a bundle."""
    return name.count("/") > 1 and name.rpartition("/")[2].startswith("0x")


def namespace_or_pattern(name: str) -> str:
    """*name*, of a namespace or a pattern of namespaces.  ValueError where it is neither, or a bundle's."""
    if is_bundle(namespace_or_bundle(name)):
        raise ValueError(f"{name!r} is a bundle, and its halves would not be in it once it is split; {_NAMESPACE}")
    return name


def _bundle(namespace: str, text: str) -> str:
    parts = _check_namespace(namespace, of_bundle=True)
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not the range of a bundle; {_FORMS}")
    range_name = f"0x{int(match[1], 16):08x}_0x{int(match[2], 16):08x}"
    try:
        parse_bundle(f"{namespace}/{range_name}")
    except TrimtabError as error:
        raise ValueError(str(error)) from error
    if range_name != text.lower():
        raise ValueError(f"{text!r} is not the range of a bundle: Pulsar writes {'/'.join([*parts, range_name])}")
    return f"{namespace}/{range_name}"


def _check_namespace(name: str, *, of_bundle: bool = False) -> list[str]:
    """The parts of the namespace *name*.  ValueError where Pulsar has no such name."""
    parts = name.split("/")
    if len(parts) not in _NAMESPACE_PARTS or not all(parts) or len(name) > LONGEST_NAME:
        raise ValueError(f"{name!r} is not a namespace{' with its tenant' if of_bundle else ''}; {_FORMS}")
    # In a pattern a letter stands for what fits.
    fitting = parts if of_bundle else [part.replace(ANY, "x") for part in parts]
    wrong = next((part for part, fits in zip(parts, fitting, strict=True) if not is_named_entity(fits)), None)
    if wrong is not None:
        alone = "; a bundle's namespace is a name, and no pattern" if ANY in wrong else ""
        raise ValueError(f"{wrong!r} is not a valid name in Pulsar: allowed are ASCII letters, digits and -=:._{alone}")
    return parts
