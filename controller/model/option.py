"""Declares an option of a strategy in one place: default, name in broker.conf, unit and meaning."""

from dataclasses import field
from typing import Any


def option(broker_conf: str, *, default: Any, unit: str = "", meaning: str, aliases: tuple[str, ...] = ()) -> Any:
    """A dataclass field that is an option of a strategy.

    ``broker_conf`` is its name in Pulsar's broker.conf; ``aliases`` are older or misspelt names, tried in order.
    ``default`` is that of Pulsar 4.0; controller.model.pulsar_version lists those of other versions.  The settings and
    `trimtab options` read the metadata.
    """
    return field(
        default=default,
        metadata={"broker_conf": broker_conf, "unit": unit, "meaning": meaning, "aliases": aliases},
    )
