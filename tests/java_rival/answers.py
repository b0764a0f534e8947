"""What the classes of a release answer to the recorded cases, beside what is recorded.

The cases are those of ``tests/vectors``: inputs, and the answers of Pulsar 4.0.8.  Another release mostly answers the
same, so only what differs is recorded for it: a line for each component in ``<release>/answers.jsonl.gz``.
"""

import gzip
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.java_rival.cycles import MANAGERS, class_names
from tests.java_rival.driver import Driver

Case = dict[str, Any]

VECTORS: Final = Path(__file__).parent.parent / "vectors"
#: The name of the file, in the folder of the release.
FILE: Final = "answers.jsonl.gz"
#: Runs of a load manager over rounds that are given; the others are classes that the driver knows by these names.
_CYCLES: Final = {f"cycles_{manager}": manager for manager in MANAGERS}
#: What UnloadScheduler counts.
_OF_THE_SCHEDULER: Final = "Success/"
COMPONENTS: Final = (
    "overload_shedder", "threshold_shedder", "uniform_load_shedder", "avg_shedder", "ext_transfer_shedder",
    "round_robin_selector", "least_long_term_message_rate", "least_resource_usage_with_weight",
    "ext_least_resource_usage_with_weight", "modular_select_broker", "anti_affinity_filter",
    "apply_namespace_policies", "namespace_isolation_policy", "filter_large_topic_count", *_CYCLES,
    "time_average", "time_average_broker_reset", "resource_usage", "local_broker_data_update", "report_needs_update",
    "modular_update_bundle_data", "bundle_stats_compare", "ext_broker_load_data", "ext_top_k_bundles",
    "bundle_splitter_task", "ext_bundle_split_strategy", "bundle_split_algorithms", "bundle_split_numbers",
    "topic_hash", "bundle_lookup", "topic_names",
)  # fmt: skip


def files(component: str) -> tuple[str, ...]:
    """The names of the files that may hold cases of *component*."""
    return component, f"random_{component}", f"reported_{component}"


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, gzipped or not."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    # Not splitlines(): a topic name may hold a character that it takes for the end of a line.
    return [json.loads(line) for line in text.split("\n") if line]


def lines(driver: Driver, folder: Path = VECTORS) -> Iterator[dict[str, Any]]:
    """For each file of a component in *folder*: how many cases, how many answers are alike, and those that differ."""
    for component in COMPONENTS:
        for file in files(component):
            path = folder / f"{file}.jsonl.gz"
            if path.exists():
                yield _line(driver, component, file, read_cases(path))


def ask(driver: Driver, component: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """What the class answers to *case*, in the form of its "expected"."""
    if component in _CYCLES:
        return {"rounds": list(_rounds(driver, _CYCLES[component], case))}
    return driver.ask({"component": component, "config": case["config"], "input": case["input"]})


def same(a: Any, b: Any) -> bool:
    """Whether two answers are equal, numbers to a relative 1e-9."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return a == b or (not isinstance(a, str) and not isinstance(b, str) and math.isclose(a, b, rel_tol=1e-9))
    return bool(a == b)


def _line(driver: Driver, component: str, file: str, cases: Sequence[Case]) -> dict[str, Any]:
    found = [ask(driver, component, case) for case in cases]
    differing = [
        {"case": case["case"], "expected": answer}
        for case, answer in zip(cases, found, strict=True)
        if not any(same(_as_recorded(answer, one), one) for one in (case["expected"], *case.get("acceptable", ())))
    ]
    digest = hashlib.sha256("\n".join(json.dumps(one, sort_keys=True) for one in found).encode()).hexdigest()
    return {"file": file, "cases": len(cases), "same": len(cases) - len(differing), "sha256": digest,
            "differing": differing}  # fmt: skip


def _as_recorded(answer: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """*answer* without what is null in *recorded*: long lists of boundaries are not recorded."""
    return {key: None if key in recorded and recorded[key] is None else value for key, value in answer.items()}


def _rounds(driver: Driver, manager: str, case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rounds as recorded; ends with the first one that differs, as the clusters of the next ones follow from it."""
    given = {key: value for key, value in case["input"].items() if key != "rounds"}
    driver.ask({"config": class_names(manager, case["config"]), "input": given})
    for asked, recorded in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        answer = driver.ask(asked)
        if "counters" in recorded:  # the extensible load manager: recorded without its scheduler and reporters
            counters = answer["counters"].items()
            answer["counters"] = {name: count for name, count in counters if not name.startswith(_OF_THE_SCHEDULER)}
            answer["usage_history"] = {}
            if sorted(answer["unloads"]) == sorted(recorded["unloads"]):
                answer["unloads"] = recorded["unloads"]
        found = {key: None if recorded[key] is None else answer[key] for key in recorded}
        yield found
        if not same(found, recorded):
            return
