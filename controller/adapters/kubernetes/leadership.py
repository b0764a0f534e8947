"""Leadership by a Lease of Kubernetes: whoever holds it leads, for as long as it is renewed.

    spec.holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions   as every Lease has them
    metadata.annotations   trimtab/cluster      whose election it is
                           trimtab/epoch        the number of the newest leadership
                           trimtab/agreed-NAME  what all contenders agree on

The Lease is replaced by whoever knows its newest version, so one of several changes at once wins.  No clocks of two
hosts are compared: another process takes a Lease over once it has seen it unchanged for its whole duration, and a
leader believes in itself for two thirds of that, from before it sent the last renewal that was answered.

``leaseTransitions`` is not the epoch: anybody may edit it, and it begins anew where the Lease was deleted.  The epoch
is above that of the annotation, above the one in the store of the controls (which `trimtab stop-all` raises) and above
the journal's, and claimed in one update with the Lease itself.
"""

import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import uuid4

from controller.adapters.election.controls import ControlStore
from controller.adapters.kubernetes.api import KubernetesUnreachableError, LeaseApi, LeaseConflictError, LeaseObject
from controller.adapters.network.deadline import steady
from controller.model.errors import AnotherClusterError, LeadershipLostError, StateError, TrimtabError
from controller.model.leadership import Agreement, Leader, epoch_of, newer_epoch, no_preparation
from controller.wire.process import process_in

log = logging.getLogger(__name__)

_CLUSTER: Final = "trimtab/cluster"
_EPOCH: Final = "trimtab/epoch"
_AGREED: Final = "trimtab/agreed-{}"
#: So many times an update is tried where others change the Lease at the same moment.
_TRIES: Final = 5
#: Parts of its duration in which a Lease is renewed, and after which its holder does not believe in it any more.
_RENEWALS: Final = 5
_BELIEVED: Final = 2 / 3
#: Whatever a Lease says, nobody waits longer for a holder that is silent.
_LONGEST_SECONDS: Final = 3600.0
_LONGEST_EXCERPT: Final = 60
#: Of a process.
_NUMBER: Final = re.compile(r"[0-9]{1,10}")


def leader_of(api: LeaseApi, cluster: str) -> Leader | None:
    """The process that holds the Lease; None where none does.  Creates nothing.  TrimtabError.

    A holder that died counts as one until its time is over, by the clock of this host.
    """
    lease = api.read()
    if lease is None:
        return None
    _require_cluster(api, lease, cluster)
    spec, now_ms = _spec(lease), time.time() * 1000
    holder, since_ms, renewed_ms = _text(spec, "holderIdentity"), _ms(spec, "acquireTime"), _ms(spec, "renewTime")
    if not holder or now_ms > renewed_ms + _duration(spec, 0.0) * 1000:
        return None
    # Another program's holder has another form, and may be anything.
    host, number, _ = [*holder.rsplit("_", 2), "", ""][:3]
    number = number if _NUMBER.fullmatch(number) else "0"
    host, process = process_in(json.dumps({"host": host, "process": int(number)}).encode())
    return Leader(host=host, process=process, since_ms=since_ms)


def require_rights(api: LeaseApi, cluster: str) -> None:
    """TrimtabError where a leader of *cluster* could not use the Lease: AccessDeniedError, AnotherClusterError ...

    Changes nothing: the API server only checks.
    """
    lease = api.read()
    if lease is None:
        api.create({"metadata": {}}, dry_run=True)
        return
    _require_cluster(api, lease, cluster)
    with suppress(LeaseConflictError):  # its holder has just renewed it, and we may
        api.replace(lease, dry_run=True)


class LeaseLeadership:
    """Leadership of *cluster* by the Lease of *api*, for *seconds* after each renewal.

    *epochs*: the store that `trimtab stop-all` raises the epoch in; it is closed with this.
    """

    def __init__(self, api: LeaseApi, *, cluster: str, seconds: float, epochs: ControlStore) -> None:
        self._api, self._cluster, self._seconds, self._epochs = api, cluster, seconds, epochs
        self._identity = f"{socket.gethostname() or 'unknown'}_{os.getpid()}_{uuid4().hex}"
        #: Guards what follows; held while the Lease is replaced.
        self._changing = threading.RLock()
        self._lease: LeaseObject | None = None
        self._epoch: int | None = None
        #: Until when this process believes that it leads, by its own steady clock; None: it does not.
        self._until: float | None = None
        self._answered = False
        self._end = threading.Event()
        self._renewing: threading.Thread | None = None
        #: Version and holder of the Lease that was seen last, and since when.
        self._observed: tuple[str, float] = ("", 0.0)

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """See Leadership.  TrimtabError where the API server cannot be reached at first, or refuses."""
        self._lose()
        while not stop():
            try:
                if self._try_to_acquire():
                    self._renew_from_now_on()
                    return True
                stand_by()
                stand_by = no_preparation
            except KubernetesUnreachableError:
                if not self._answered:
                    raise
            except LeaseConflictError as error:  # most often another one has it now
                log.debug("%s", error)
            self._end.wait(self._seconds / _RENEWALS)
        return False

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""
        claimed = list[int]()

        def with_epoch(lease: LeaseObject) -> LeaseObject:
            stored = self._stored_epoch(lease)
            claimed.append(newer_epoch(self._epochs.epoch(), stored, journal_epoch) + 1)
            return self._as_holder(_annotated(lease, _EPOCH, str(claimed[-1])))

        with self._changing:
            self._update(with_epoch)
            self._epoch = claimed[-1]
        self._epochs.raise_epoch(claimed[-1])
        return claimed[-1]

    def check(self) -> None:
        """See Leadership.  One look at the Lease, and one at the epoch beside the controls."""
        self._require_belief()
        try:
            lease = self._api.read()
        except TrimtabError as error:
            raise self._loss(f"the API server did not answer: {error}") from error
        with self._changing:
            self._require_own(lease)
        newest = 0
        with suppress(TrimtabError):  # it is not needed: stop-all also fences the journal
            newest = self._epochs.epoch()
        if self._epoch is not None and newest > self._epoch:
            raise self._loss(f"epoch {newest} has begun: another controller leads, or somebody ran stop-all")
        self._require_belief()

    def agreement(self, name: str) -> Agreement:
        """See Leadership."""
        where = f"the annotation {_AGREED.format(name)} of {self._api.place}"
        return Agreement(where=where, propose=partial(self._agreed, _AGREED.format(name)))

    def lost(self) -> bool:
        """See Leadership."""
        until = self._until
        if until is not None and steady() >= until:
            # A renewal that is answered late does not make it lead again.
            self._until = until = None
        return until is None

    def session_lost(self) -> bool:
        """See Leadership.  Never true: a Lease can be acquired again."""
        return False

    def release(self) -> None:
        """See Leadership.  The next process need not wait."""
        self._end.set()
        if self._renewing is not None:
            self._renewing.join(self._seconds)
        with self._changing:
            lease = None if self.lost() else self._lease
            # First here, then there: whoever holds it next must not find this process leading, too.
            self._lose()
        if lease is not None:
            self._give_back(lease)
        self._api.close()
        self._epochs.close()

    def _give_back(self, lease: LeaseObject | None) -> None:
        for _ in range(_TRIES):
            if lease is None or _text(_spec(lease), "holderIdentity") != self._identity:
                return
            try:
                self._api.replace(_with_spec(lease, holderIdentity="", leaseDurationSeconds=1))
            except LeaseConflictError:
                with suppress(TrimtabError):
                    lease = self._api.read()
            except TrimtabError as error:
                log.warning("the lease is not given back, so the next leader waits: %s", error)
                return
            else:
                return

    # ---- the Lease ----

    def _try_to_acquire(self) -> bool:
        began = steady()
        lease = self._api.read()
        self._answered = True
        if lease is None:
            lease = self._api.create(self._as_holder({"metadata": {"annotations": {_CLUSTER: self._cluster}}}))
        else:
            _require_cluster(self._api, lease, self._cluster)
            if not self._may_take(lease):
                return False
            lease = self._api.replace(self._as_holder(_annotated(lease, _CLUSTER, self._cluster)))
        with self._changing:
            self._lease, self._until = lease, began + self._seconds * _BELIEVED
        return True

    def _may_take(self, lease: LeaseObject) -> bool:
        """Whether nobody holds *lease*, or it has not changed for its duration, by this process's own clock."""
        spec = _spec(lease)
        holder = _text(spec, "holderIdentity")
        version, now = f"{lease['metadata'].get('uid')} {lease['metadata'].get('resourceVersion')}", steady()
        if self._observed[0] != version:
            self._observed = (version, now)
        duration = max(self._seconds, _duration(spec, self._seconds))
        return holder in ("", self._identity) or now - self._observed[1] >= duration

    def _as_holder(self, lease: LeaseObject) -> LeaseObject:
        """*lease*, held by this process."""
        spec, now = _spec(lease), _now()
        changes: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": now,
        }
        if spec.get("holderIdentity") != self._identity:
            transitions = spec.get("leaseTransitions")
            transitions = transitions if isinstance(transitions, int) and 0 <= transitions < 1 << 30 else 0
            changes |= {"acquireTime": now, "leaseTransitions": transitions + 1}
        return _with_spec(lease, **changes)

    def _update(self, how: Callable[[LeaseObject], LeaseObject]) -> None:
        """Replace the Lease, which this process holds, by *how* of it; LeadershipLostError where it does not."""
        with self._changing:
            for _ in range(_TRIES):
                self._require_belief()
                began = steady()
                try:
                    self._require_own(self._lease)
                    self._keep(self._api.replace(how(self._lease or {})), began)
                except LeaseConflictError:
                    # Somebody has edited it, or has it: the newest one says which.
                    self._lease = self._newest()
                except TrimtabError as error:
                    if isinstance(error, LeadershipLostError | StateError):
                        raise
                    raise self._loss(f"the API server did not answer: {error}") from error
                else:
                    return
            raise self._loss(f"{self._api.place} was changed by others {_TRIES} times at once")

    def _newest(self) -> LeaseObject | None:
        try:
            return self._api.read()
        except TrimtabError as error:
            raise self._loss(f"the API server did not answer: {error}") from error

    def _keep(self, lease: LeaseObject, began: float) -> None:
        """*lease* is as this process wrote it after *began*; it leads for longer, unless it does not any more."""
        self._lease = lease
        if not self.lost():
            self._until = began + self._seconds * _BELIEVED

    def _require_belief(self) -> None:
        if self.lost():
            raise LeadershipLostError(f"{self._api.place} was not renewed in time")

    def _require_own(self, lease: LeaseObject | None) -> None:
        """LeadershipLostError unless *lease* is this process's, with its epoch."""
        if lease is None:
            raise self._loss(f"{self._api.place} was deleted")
        holder = _text(_spec(lease), "holderIdentity")
        if holder != self._identity:
            raise self._loss(f"{self._api.place} is held by {holder[:_LONGEST_EXCERPT] or 'nobody'}")
        if self._epoch is not None and self._stored_epoch(lease) != self._epoch:
            raise self._loss(f"{_EPOCH} of {self._api.place} is not {self._epoch}, which this process claimed")

    def _stored_epoch(self, lease: LeaseObject) -> int:
        text = _annotations(lease).get(_EPOCH, "0")
        epoch = epoch_of(str(text).encode())
        if epoch is None:
            raise StateError(
                f"the annotation {_EPOCH} of {self._api.place} holds {str(text)[:_LONGEST_EXCERPT]!r}, not an epoch:"
                f" remove it (kubectl annotate lease {self._api.place.name} {_EPOCH}-)"
            )
        return epoch

    def _agreed(self, key: str, value: str) -> str:
        self._update(
            lambda lease: self._as_holder(lease if key in _annotations(lease) else _annotated(lease, key, value))
        )
        return str(_annotations(self._lease or {}).get(key, ""))

    # ---- renewals ----

    def _renew_from_now_on(self) -> None:
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
            self._renewing.start()

    def _renew(self) -> None:
        """Renew the Lease while this process holds it, until it ends."""
        while not self._end.wait(self._seconds / _RENEWALS):
            with self._changing:
                if self.lost():
                    continue
                began = steady()
                try:
                    self._require_own(self._lease)
                    self._keep(self._api.replace(self._as_holder(self._lease or {})), began)
                except LeaseConflictError:
                    with suppress(TrimtabError):
                        self._lease = self._api.read()
                except LeadershipLostError as error:
                    log.error("leadership lost: %s", error)
                except TrimtabError as error:
                    log.warning("the lease was not renewed: %s", error)

    def _lose(self) -> None:
        with self._changing:
            self._until = self._epoch = self._lease = None

    def _loss(self, why: str) -> LeadershipLostError:
        self._until = None
        return LeadershipLostError(why)


def _require_cluster(api: LeaseApi, lease: LeaseObject, cluster: str) -> None:
    """AnotherClusterError where *lease* is another cluster's than *cluster*'s."""
    owner = _annotations(lease).get(_CLUSTER, cluster)
    if owner != cluster:
        raise AnotherClusterError(
            f"{api.place} elects the leader of cluster {str(owner)[:_LONGEST_EXCERPT]!r}, not of {cluster!r}: set"
            " another name in [election.lease]"
        )


def _spec(lease: LeaseObject) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _annotations(lease: LeaseObject) -> dict[str, Any]:
    annotations = lease.get("metadata", {}).get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _annotated(lease: LeaseObject, key: str, value: str) -> LeaseObject:
    metadata = {**lease.get("metadata", {}), "annotations": {**_annotations(lease), key: value}}
    return {**lease, "metadata": metadata}


def _with_spec(lease: LeaseObject, **changes: Any) -> LeaseObject:
    return {**lease, "spec": {**_spec(lease), **changes}}


def _text(spec: dict[str, Any], key: str) -> str:
    value = spec.get(key)
    return value if isinstance(value, str) else ""


def _duration(spec: dict[str, Any], default: float) -> float:
    value = spec.get("leaseDurationSeconds")
    return min(float(value), _LONGEST_SECONDS) if isinstance(value, int) and value > 0 else default


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _ms(spec: dict[str, Any], key: str) -> int:
    """A time of *spec*, epoch ms; 0 where it is none, or before 1970."""
    try:
        return max(0, int(datetime.fromisoformat(_text(spec, key)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
