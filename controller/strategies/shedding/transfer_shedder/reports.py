"""The bundles of a view as the extensible load manager's brokers would report them, and what holds them back."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.model.decision import Reason
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Bools, ClusterView, Ints
from controller.strategies.common.candidates import first_against
from controller.strategies.common.top_bundles import TopBundles
from controller.strategies.protocols import Filter
from controller.strategies.shedding.transfer_shedder.exchange import TopBundle

_MAX_SCANS: Final = 16


class ReportedBundles:
    """The brokers' reports of their bundles as a view has them, and what keeps a bundle from going somewhere."""

    def __init__(
        self, view: ClusterView, limits: TopBundles, filters: Sequence[Filter], *, swaps_keep_grace: bool
    ) -> None:
        """Reports within *limits*, each made when it is asked for; *filters* say where a bundle may go.

        *swaps_keep_grace*: no bundle in its grace period comes back in exchange.
        """
        self._view = view
        self._limits = limits
        self._reports: dict[str, Sequence[TopBundle]] = {}
        self._row_of: dict[str, int] = {}
        self._filters = filters
        self._retained = view.recently_unloaded if swaps_keep_grace else view.guarded
        self._governed = _governed(view)

    def _rows(self, broker: str) -> Ints:
        """The bundles of *broker* that a report may hold, in name order."""
        bundles, code = self._view.bundles, self._view.brokers.code_of[broker]
        # Usually only few brokers are asked about: to search their bundles is quicker than to sort all bundles.
        scan = len(self._reports) < _MAX_SCANS
        rows = np.flatnonzero(bundles.broker == code) if scan else bundles.of_broker(code)
        governed = None if self._governed is None else self._governed[bundles.namespace[rows]]
        return rows[self._limits.reportable(bundles, governed, rows)]

    def of(self, broker: str) -> Sequence[TopBundle]:
        """The report of *broker*, lightest bundle first."""
        if broker not in self._reports:
            bundles = self._view.bundles
            rows = self._limits.of(bundles, self._rows(broker))
            names = [bundles.names[row] for row in rows.tolist()]
            load = bundles.load[rows]
            throughput = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]
            self._row_of.update(zip(names, rows.tolist(), strict=True))
            self._reports[broker] = list(map(TopBundle, names, throughput.tolist()))
        return self._reports[broker]

    def stays(self, bundle: str, broker: str) -> Reason | None:  # noqa: ARG002  a view lists bundles by their owner
        """Whether *bundle* has to stay put."""
        return Reason.RECENTLY_UNLOADED if self._view.recently_unloaded[self._row_of[bundle]] else None

    def barred(self, bundle: str, destination: str) -> Reason | None:
        """Whether a filter is against *bundle* going to *destination*."""
        view = self._view
        against = first_against(view, self._row_of[bundle], view.brokers.code_of[destination], self._filters)
        return None if against is None else against.reason

    def retained(self, bundle: str, broker: str) -> Reason | None:  # noqa: ARG002  a view lists bundles by their owner
        """Whether *bundle* must not come back in exchange."""
        retained = self._retained
        return None if retained is None or not retained[self._row_of[bundle]] else Reason.RECENTLY_UNLOADED


def _governed(view: ClusterView) -> Bools | None:
    """(namespaces,) which have an isolation policy or an anti-affinity group; None: there are no policies."""
    policies = view.policies
    if not policies.isolation and not policies.anti_affinity_group:
        return None
    return np.array([policies.governs(name) for name in view.bundles.namespaces], np.bool_)
