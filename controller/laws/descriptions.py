"""Clusters as text, for reports of an example that breaks a law."""

from collections.abc import Iterable, Sequence

from controller.model.load import (
    CPU,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    UNOWNED,
    ClusterView,
    Floats,
)

_MB = 1024 * 1024


def describe_cluster(view: ClusterView) -> list[str]:
    """A line for each broker, followed by a line for each of its bundles."""
    lines = []
    for row, name in enumerate(view.brokers.names):
        share = view.brokers.usage[row, CPU] / view.brokers.limit[row, CPU]
        coming = view.brokers.preallocated_rate[row]
        also = f", {coming:g} msg/s on their way to it" if coming else ""
        lines.append(f"broker {name}: CPU {share:.1%}{also}")
        lines += _describe_bundles(view, view.bundles.of_broker(row).tolist())
    if (view.bundles.broker == UNOWNED).any():
        lines.append("bundles without a broker:")
        lines += _describe_bundles(view, view.bundles.of_broker(UNOWNED).tolist())
    return lines


def name_brokers(view: ClusterView, rows: Iterable[int]) -> str:
    """The brokers at *rows* by name."""
    return ", ".join(view.brokers.names[row] for row in rows) or "no broker"


def _describe_bundles(view: ClusterView, rows: Sequence[int]) -> list[str]:
    bundles = view.bundles
    return [
        f"  bundle {bundles.names[row]}: {describe_load(bundles.load[row])}, {bundles.topics[row]} topics,"
        f" {bundles.producers[row]} producers, {bundles.consumers[row]} consumers"
        + (", unloaded recently" if view.recently_unloaded[row] else "")
        for row in rows
    ]


def describe_load(load: Floats) -> str:
    """One row of a load."""
    mbytes = (load[THROUGHPUT_IN] + load[THROUGHPUT_OUT]) / _MB
    return f"{mbytes:g} MB/s, {load[RATE_IN] + load[RATE_OUT]:g} msg/s"
