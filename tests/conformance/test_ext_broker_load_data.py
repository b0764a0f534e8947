import numpy as np

from controller.strategies.common.broker_load_data import BrokerLoad, BrokerLoadFeatures
from tests.conformance.vectors import Case, close_to, configured, floats, resources

COMPONENT = "ext_broker_load_data"


def test_a_brokers_usage_after_each_report_is_pulsars(case: Case) -> None:
    features = configured(BrokerLoadFeatures, case["config"])
    now = BrokerLoad.unknown(1)
    assert _numbers(now) == close_to(case["expected"]["initial"])
    for report, expected in zip(case["input"]["updates"], case["expected"]["after"], strict=True):
        if report["clear_first"]:
            now = BrokerLoad.unknown(1)
        usage, limit = resources([report])
        throughput = np.array([floats(report["load"][2:]).sum()])
        now = features.updated(now, usage, limit, throughput)
        assert _numbers(now) == close_to(expected)


def _numbers(load: BrokerLoad) -> dict[str, float]:
    names = ("max_resource_usage", "weighted_max_ema", "msg_throughput_ema")
    return {name: float(getattr(load, name)[0]) for name in names}
