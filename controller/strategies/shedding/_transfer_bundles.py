"""The bundles of a view as the extensible load manager's brokers would report them, and what holds them back."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.aggregate.top_bundles import TopBundles
from controller.model.decision import Reason
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, Bools, ClusterView, Ints
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.shedding._transfer_pair import TopBundle

_FEW: Final = 16


class ReportedBundles:
    """The brokers' reports of their bundles as a view has them, and what keeps a bundle from going somewhere."""

    def __init__(self, view: ClusterView, limits: TopBundles) -> None:
        """Reports within *limits*; each is made when it is asked for."""
        self._view = view
        self._limits = limits
        self._reports: dict[str, Sequence[TopBundle]] = {}
        self._row_of: dict[str, int] = {}
        self._isolation = IsolationPolicies() if view.policies.isolation else None

    def _rows(self, broker: str) -> Ints:
        """The bundles of *broker* that a report may hold, in name order."""
        bundles, code = self._view.bundles, self._view.brokers.code_of[broker]
        # Few brokers are asked about as a rule: to look for theirs is quicker than to sort everybody's.
        few = len(self._reports) < _FEW
        rows = np.flatnonzero(bundles.broker == code) if few else bundles.of_broker(code)
        return rows[self._limits.reportable(bundles, self._governed(rows), rows)]

    def _governed(self, rows: Ints) -> Bools | None:
        """(rows,) whether a bundle's namespace has an isolation policy or an anti-affinity group; None: no one's."""
        bundles, policies = self._view.bundles, self._view.policies
        if not policies.isolation and not policies.anti_affinity_group:
            return None
        codes = bundles.namespace[rows].tolist()
        return np.array([policies.governs(bundles.namespaces[code]) for code in codes], np.bool_)

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
        """Whether *bundle* has to stay put, or may not go to *destination*."""
        if self._isolation is not None:
            # Of all brokers: how many primary ones there are decides whether secondary ones may take it.
            open_to_it = self._isolation.keep(self._view, self._row_of[bundle], np.arange(len(self._view.brokers)))
            if self._view.brokers.code_of[destination] not in open_to_it:
                return self._isolation.reason
        return self.stays(bundle, destination)
