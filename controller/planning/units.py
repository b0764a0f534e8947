"""Brings what brokers report to one unit, where some of them report in percent.

A broker with ExtensibleLoadManagerImpl publishes its load data when its load changes, else every 15 minutes.  Until a
collector has heard of it, its sweep holds its metrics: usage in percent, with 100 as the limit of every resource.  Its
neighbours' CPU then is of 1,600, and their bandwidth of 10,000,000.  Shares can be compared, amounts cannot.
"""

from typing import Final

import numpy as np

from controller.model.load import CPU, Floats

#: The limit of each resource where usage is in percent.
_PERCENT: Final = 100.0
#: A broker that reports in amounts has more MiB of memory, or kbit/s, than this.
_AMOUNT: Final = 1000.0


def of_one_unit(usage: Floats, limit: Floats) -> tuple[Floats, Floats]:
    """*usage* and *limit* (n, R) with brokers in percent taken to be as large as the smallest of the others.

    As they are where all of them, or none, report in percent.
    """
    in_percent = (limit == _PERCENT).all(axis=1)
    others = limit[~in_percent][:, [column for column in range(limit.shape[1]) if column != CPU]]
    if not in_percent.any() or not (others > _AMOUNT).any():
        return usage, limit
    known = np.where(np.isfinite(limit) & (limit > 0), limit, np.inf)[~in_percent].min(axis=0)
    # Where nobody else knows a limit, that of percent is none either.
    smallest = np.where(np.isfinite(known), known, 0.0)
    of_them = in_percent[:, None]
    return np.where(of_them, usage * (smallest / _PERCENT), usage), np.where(of_them, smallest, limit)
