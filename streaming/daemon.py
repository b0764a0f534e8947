"""Spark's Python daemon, with what its workers need loaded before it forks them.

Spark ends workers that have been idle for a minute; the next ones would load pandas, Arrow and the fold anew, some
seconds of processor time each, in the middle of a micro-batch.

SIGINT and SIGTERM are blocked, here and in the workers: service managers send them to every process of a service, and a
micro-batch without its workers ends with traces.  The daemon ends when its JVM does.

What is loaded is frozen for the garbage collector: a worker runs it after each task, and would look at all of it anew.
"""

import gc
import signal

from pyspark.daemon import manager

import streaming.state  # noqa: F401

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    gc.collect()
    gc.freeze()
    manager()
