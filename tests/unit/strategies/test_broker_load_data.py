from controller.strategies.common.broker_load_data import BrokerLoad


def test_a_broker_that_never_reported_is_full_and_has_no_traffic() -> None:
    unknown = BrokerLoad.unknown(2)
    assert unknown.weighted_max_ema.tolist() == unknown.max_resource_usage.tolist() == [1.0, 1.0]
    assert unknown.msg_throughput_ema.tolist() == [0.0, 0.0]
    assert not unknown.reported.any()
