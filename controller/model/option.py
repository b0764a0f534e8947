"""One declaration per option: its default, broker.conf name, unit and meaning."""

from dataclasses import field
from typing import Any


def option(broker_conf: str, *, default: Any, unit: str = "", meaning: str, aliases: tuple[str, ...] = ()) -> Any:
    """Declare a strategy's option.

    ``broker_conf`` is the name in Pulsar's broker.conf and ``aliases`` its older or misspelt names, tried
    in order; ``default`` equals Pulsar 4.0.8's.  The metadata feeds the settings reader and the
    options table.
    """
    return field(
        default=default,
        metadata={"broker_conf": broker_conf, "unit": unit, "meaning": meaning, "aliases": aliases},
    )
