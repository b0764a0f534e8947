"""[metrics]: where each process answers /metrics, /healthz and /readyz."""

from controller.settings.addresses import ListenAddress
from controller.settings.section import Section


class MetricsSettings(Section):
    """The addresses, host:port, at which trimtab's processes show their state.  Without one, nothing is served."""

    controller: ListenAddress = ""
    """Of `trimtab run`.  A second one on the same host needs another port: its option --metrics.  Whoever can reach the
    address can read the metrics: they hold no secrets, but names of the cluster and its activity."""
    collector: ListenAddress = ""
    """Of `trimtab collect`."""
    executor: ListenAddress = ""
    """Of `trimtab execute`."""
