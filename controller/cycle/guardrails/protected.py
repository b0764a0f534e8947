"""Bundles that must not be moved or split, and the guardrail that forbids it."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np

from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import Bools, ClusterView, Ints, Preallocated
from controller.model.name_patterns import Namespaces
from controller.model.names import is_system_owned
from controller.model.reasons import CONFIGURATION, THROTTLED, Meaning

MEANINGS: Final = {
    Reason.IN_FLIGHT: Meaning(THROTTLED, "a command has no result yet: see `trimtab status` if it does not come"),
    Reason.BACK_OFF: Meaning(THROTTLED, "a command about the bundle failed; it rests before the next one"),
    Reason.SYSTEM_NAMESPACE: Meaning(CONFIGURATION, "Pulsar's own namespaces are never moved or split"),
    Reason.EXCLUDED: Meaning(
        CONFIGURATION,
        "decisions.excluded, decisions.only or loadBalancerSheddingExcludedNamespaces keeps it, or the log",
    ),
}


class BundleGuardrail(NamedTuple):
    """What keeps a bundle where it is, and whole."""

    reason: Reason
    #: Its name in verdicts: the setting, where it has one.
    by: str
    #: Why, of several bundles.
    why: str
    #: Why, of one bundle, where the reason does not say enough.
    detail: str = ""

    def verdict(self, bundle: str) -> Verdict:
        """The verdict on *bundle*."""
        return Verdict(subject=bundle, reason=self.reason, by=self.by, detail=self.detail)


#: The guardrails of bundles, weakest first.
GUARDRAILS: Final = (
    BundleGuardrail(Reason.IN_FLIGHT, "trimtabSheddingWaitsForResults", "their brokers have unloads in flight"),
    BundleGuardrail(Reason.IN_FLIGHT, "split", "they are split in this interval", "is being split"),
    BundleGuardrail(
        Reason.NAMESPACE_UNKNOWN, "guardrails.move_undescribed", "their namespaces have no namespace_state record"
    ),
    BundleGuardrail(
        Reason.ISOLATION_POLICY,
        "isolation_policies",
        "an isolation policy that names their namespaces, or might, cannot be read",
        "an isolation policy that names its namespace, or might, cannot be read",
    ),
    BundleGuardrail(
        Reason.BACK_OFF, "decisions.retry_failed_after_seconds", "commands about them failed, and they rest for a while"
    ),
    BundleGuardrail(Reason.IN_FLIGHT, "in_flight", "they have commands in flight"),
    BundleGuardrail(
        Reason.KILLS_BROKERS,
        "guardrails.move_fatal",
        "their owners died one after the other",
        "its owners died one after the other",
    ),
    BundleGuardrail(Reason.EXCLUDED, "decisions.only", "decisions.only does not name their namespaces"),
    BundleGuardrail(Reason.EXCLUDED, "decisions.excluded", "they, or their namespaces, are excluded"),
    BundleGuardrail(Reason.EXCLUDED, "log.pulsar.namespace", "trimtab's own topics are in their namespaces"),
    BundleGuardrail(Reason.SYSTEM_NAMESPACE, "system_namespaces", "their namespaces are Pulsar's own"),
)
(
    _FREE, _GIVING, _SPLITTING, _UNDESCRIBED, _UNREADABLE, _RESTING, _IN_FLIGHT, _FATAL, _OTHERS, _EXCLUDED, _OWN,
    _SYSTEM,
) = range(-1, 11)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProtectedBundles:
    """The guarded bundles of a view, and why each is guarded."""

    view: ClusterView
    #: (bundles,) the strongest guardrail of each bundle, as an index into GUARDRAILS, or _FREE.
    guardrail: Ints

    @classmethod
    def of(
        cls,
        view: ClusterView,
        in_flight: Iterable[str],
        excluded: Set[str],
        resting: Iterable[str] = (),
        undescribed: Bools | None = None,
        unreadable: Bools | None = None,
        *,
        only: Set[str] = frozenset(),
        own_namespaces: Set[str] = frozenset(),
        fatal: Set[str] = frozenset(),
    ) -> "ProtectedBundles":
        """Guarded are bundles with a command *in_flight*, *excluded* by name or namespace, or in Pulsar's namespaces.

        Also those *resting* after a failed command, and those of namespaces that are *undescribed*, or whose policies
        are *unreadable*: (bundles,).  Where *only* is not empty, also those of namespaces that it does not name.
        *excluded* and *only* have names and patterns.  *own_namespaces* hold trimtab's own topics.
        *fatal* are those whose owners died.
        """
        table, shut, open_ = view.bundles, Namespaces.of(excluded), Namespaces.of(only)

        def of_namespace(name: str) -> int:
            if is_system_owned(name):
                return _SYSTEM
            if name in own_namespaces:
                return _OWN
            if name in shut:
                return _EXCLUDED
            return _OTHERS if only and name not in open_ else _FREE

        spaces = [of_namespace(name) for name in table.namespaces]
        guardrail = np.array(spaces, np.int64)[table.namespace] if len(table) else np.zeros(0, np.int64)
        for mask, code in ((undescribed, _UNDESCRIBED), (unreadable, _UNREADABLE)):
            if mask is not None:
                guardrail = np.maximum(guardrail, np.where(mask, code, _FREE))
        for names, code in ((resting, _RESTING), (in_flight, _IN_FLIGHT), (fatal, _FATAL), (excluded, _EXCLUDED)):
            for name in names:
                row = table.code_of.get(name)
                if row is not None:
                    guardrail[row] = max(guardrail[row], code)
        return cls(view=view, guardrail=guardrail)

    def and_bundles_of(self, givers: Set[str]) -> "ProtectedBundles":
        """These, and all other bundles of the brokers *givers*, which have unloads in flight."""
        giving = np.array([name in givers for name in self.view.brokers.names], np.bool_)
        of_them = giving[self.view.bundles.broker] & self.view.bundles.owned & ~self.mask
        return replace(self, guardrail=np.where(of_them, _GIVING, self.guardrail))

    def and_split(self, bundles: Iterable[str]) -> "ProtectedBundles":
        """These, and *bundles*, which are split in this interval.

        Pulsar: ModularLoadManagerImpl.checkNamespaceBundleSplit, which removes them from LoadData before load is shed.
        """
        guardrail, code_of = self.guardrail.copy(), self.view.bundles.code_of
        rows = [code_of[bundle] for bundle in bundles]
        guardrail[rows] = np.maximum(guardrail[rows], _SPLITTING)
        return replace(self, guardrail=guardrail)

    @property
    def mask(self) -> Bools:
        """(bundles,) whether each bundle is guarded."""
        mask: Bools = self.guardrail != _FREE
        return mask

    def verdict(self, bundle: str) -> Verdict | None:
        """Why *bundle* must not be moved or split, or None."""
        row = self.view.bundles.code_of.get(bundle)
        if row is None or self.guardrail[row] == _FREE:
            return None
        return GUARDRAILS[int(self.guardrail[row])].verdict(bundle)

    def explain(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """A strategy's *verdicts*, with those on guarded bundles replaced by the guardrail's.

        O(bundles + verdicts): of tens of thousands of bundles each can have one.
        """
        names = self.view.bundles.names
        rows = np.flatnonzero(self.mask)
        guardrails = map(GUARDRAILS.__getitem__, self.guardrail[rows].tolist())
        guarded = dict(zip((names[row] for row in rows.tolist()), guardrails, strict=True))
        return [
            guardrail.verdict(each.subject) if (guardrail := guarded.get(each.subject)) else each for each in verdicts
        ]

    def counts(self, what: str) -> list[Verdict]:
        """One verdict for each guardrail: how many bundles it keeps from what is done to them, such as "split"."""
        counts = np.bincount(self.guardrail[self.mask], minlength=len(GUARDRAILS)).tolist()
        return [
            Verdict(
                subject=CLUSTER,
                reason=each.reason,
                observed=float(n),
                unit="bundles",
                by=each.by,
                detail=f"not {what}, since {each.why}",
            )
            for each, n in zip(GUARDRAILS, counts, strict=True)
            if n
        ]

    def rest(self) -> ClusterView:
        """The view without guarded bundles; brokers, namespaces and bundle counts are unchanged.  O(bundles)."""
        table, rows = self.view.bundles, np.flatnonzero(~self.mask)
        if len(rows) == len(table):
            return self.view
        columns = {f.name for f in fields(table)} - {"names", "namespaces", "detail"}
        free_bundles = replace(
            table,
            names=tuple(table.names[row] for row in rows.tolist()),
            **{name: getattr(table, name)[rows] for name in columns},
            detail=table.detail.take(rows),
        )
        # Preallocated bundles are in flight, so none is left.
        return replace(
            self.view,
            bundles=free_bundles,
            recently_unloaded=self.view.recently_unloaded[rows],
            guarded=None if self.view.guarded is None else self.view.guarded[rows],
            preallocated=Preallocated(),
            chosen=Preallocated(),
        )
