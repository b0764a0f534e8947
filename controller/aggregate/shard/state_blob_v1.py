"""Migrates the JSON parts of version 1 of a shard's state to the current form."""

from typing import Any

import numpy as np

from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.kept.fact_text import fact_from_json, fact_to_text
from controller.aggregate.kept.seeds import Seeds
from controller.aggregate.kept.states import States
from controller.aggregate.waiting.headers import WaitingFacts, WaitingHeaders
from controller.model.load import Ints


def waiting_and_kept(header: dict[str, Any], pool: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The *pool* extended by the names in the headers, and the fields of a ShardState that *header* has."""
    code_of = {name: i for i, name in enumerate(pool)}
    headers, facts = header["headers"], header["facts"]

    def column(rows: list[dict[str, Any]], name: str) -> Ints:
        return np.array([row[name] for row in rows], np.int64)

    def coded(name: str) -> Ints:
        return np.array([code_of.setdefault(row[name], len(code_of)) for row in headers], np.int64)

    places = ("due", "source", "partition", "offset")
    # Only shard 0 had numbers, and fewer of them.
    numbers = [[*found, *[0.0] * (NUMBERS - len(found))] for found in (row["numbers"] or () for row in headers)]
    rest = {
        "headers": WaitingHeaders(
            **{name: column(headers, name) for name in (*places, "chunk", "chunks", "last_update")},
            upto=np.zeros(len(headers), np.int64),
            broker=coded("broker"),
            sweep=coded("sweep"),
            numbers=np.array(numbers, np.float64).reshape(-1, NUMBERS),
        ),
        "facts": WaitingFacts(
            **{name: column(facts, name) for name in places},
            upto=np.zeros(len(facts), np.int64),
            texts=[fact_to_text(fact_from_json(row["fact"])) for row in facts],
        ),
        "seeds": Seeds.of(map(fact_from_json, header["seeds"])),  # type: ignore[arg-type]
        "namespaces": States.of(map(fact_from_json, header["namespaces"])),  # type: ignore[type-var]
        "brokers": States.of(map(fact_from_json, header["brokers"])),  # type: ignore[type-var]
    }
    return list(code_of), rest
