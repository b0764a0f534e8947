"""Spark's Python daemon, with what its workers need loaded before it forks them.

Spark ends workers that have been idle for a minute; the next ones would load pandas, Arrow and the fold anew, some
seconds of processor time each, in the middle of a micro-batch.
"""

from pyspark.daemon import manager

import streaming.state  # noqa: F401

if __name__ == "__main__":
    manager()
