import numpy as np

from controller.aggregate.state.averages import advance
from controller.model.load import DEFAULT_LOAD


def test_an_average_is_capped_at_its_number_of_samples() -> None:
    samples, average = np.zeros(1, np.int64), np.zeros((1, 4))
    seen = []
    for x in (1.0, 2.0, 3.0, 4.0, 5.0):
        samples, average = advance(samples, average, np.full((1, 4), x), 3)
        seen.append((int(samples[0]), round(float(average[0, 0]), 6)))
    assert seen == [(1, 1.0), (2, 1.5), (3, 2.0), (3, 2.666667), (3, 3.444444)]


def test_the_first_sample_replaces_the_initial_average() -> None:
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    samples, average = advance(np.zeros(1, np.int64), DEFAULT_LOAD[None, :], x, 10)
    assert samples.tolist() == [1]
    assert average.tolist() == x.tolist()


def test_averages_move_independently_and_the_input_arrays_are_unchanged() -> None:
    samples, average = np.array([0, 1, 10]), np.full((3, 4), 10.0)
    moved, means = advance(samples, average, np.full((3, 4), 20.0), 10)
    assert moved.tolist() == [1, 2, 10]
    assert means[:, 0].tolist() == [20.0, 15.0, 11.0]
    assert samples.tolist() == [0, 1, 10]
    assert average.min() == average.max() == 10.0
