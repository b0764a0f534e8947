import numpy as np

from controller.aggregate.state.averages import advance
from controller.model.load import DEFAULT_LOAD
from tests.conformance.vectors import Case, close_to, rows_of_4

COMPONENT = "time_average"


def test_averages_move_as_in_pulsar(case: Case) -> None:
    x = rows_of_4(case["input"]["samples"])
    expected = {state["step"]: state["state"] for state in case["expected"]["states"]}
    count = np.zeros(1, np.int64)
    average = (DEFAULT_LOAD if case["config"]["default_stats"] else np.zeros(4))[None, :]
    assert [float(count[0]), *average[0].tolist()] == case["expected"]["initial"]
    with np.errstate(all="ignore"):  # 0 samples at most: Pulsar divides by zero
        for step in range(1, case["input"]["steps"] + 1):
            count, average = advance(count, average, x[[(step - 1) % len(x)]], case["config"]["max_samples"])
            if step in expected:
                assert [float(count[0]), *average[0].tolist()] == close_to(expected.pop(step))
    assert not expected
    rate_in, rate_out, throughput_in, throughput_out = average[0].tolist()
    assert rate_in + rate_out == close_to(case["expected"]["total_msg_rate"])
    assert throughput_in + throughput_out == close_to(case["expected"]["total_msg_throughput"])
