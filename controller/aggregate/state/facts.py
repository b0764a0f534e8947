"""Facts as JSON text: the form in which they wait, and in which states of namespaces and brokers are kept."""

import json
from dataclasses import fields
from typing import Any

from controller.model.balancing import Balancing
from controller.model.errors import StateError
from controller.model.records import BrokerState, BundleSeed, CommandResult, Fact, NamespaceState, Tick

#: Compact, and not escaped: as escapes, two lone surrogates would come back as one character.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """*fact* as values of JSON; without what is None by default, so that an earlier release reads it."""
    values = {f.name: getattr(fact, f.name) for f in fields(fact) if f.default is not None}
    later = {f.name: value for f in fields(fact) if f.default is None and (value := getattr(fact, f.name)) is not None}
    return {"is": type(fact).__name__} | values | later


def fact_to_text(fact: Fact) -> str:
    """*fact* as JSON."""
    return _ENCODER.encode(fact_to_json(fact))


def fact_from_text(text: str) -> Fact:
    """The fact that :func:`fact_to_text` wrote."""
    return fact_from_json(json.loads(text))


def fact_from_json(item: dict[str, Any]) -> Fact:
    """The fact of a value of :func:`fact_to_json`; StateError for another kind."""
    values = {name: value for name, value in item.items() if name != "is"}
    match item["is"]:
        case "Tick":
            roster = values["roster"]
            return Tick(**values | {"roster": None if roster is None else tuple((b, sweep) for b, sweep in roster)})
        case "CommandResult":
            return CommandResult(**values)
        case "NamespaceState":
            lists = ("boundaries", "isolation_policies")
            return NamespaceState(**values | {name: tuple(values[name]) for name in lists})
        case "BrokerState":
            switches = values.get("balancing")
            return BrokerState(
                **values
                | {
                    "capacity": tuple((name, limit) for name, limit in values["capacity"]),
                    "balancing": None if switches is None else Balancing(*switches),
                }
            )
        case "BundleSeed":
            terms = ("short_term", "long_term")
            return BundleSeed(**values | {term: tuple(values[term]) for term in terms})
        case other:
            raise StateError(f"stored state has a fact of kind {other!r}, which this version of trimtab does not know")
