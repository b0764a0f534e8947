"""Starts the JVM first in `trimtab run`, because it takes longer than everything that is loaded meanwhile."""

from pathlib import Path

from controller.settings.trimtab_toml import Settings
from streaming.sources import source_of
from streaming.spark import session


def start_jvm(settings: Settings) -> None:
    """Start the JVM that ``Assembly(settings).session`` is going to use, and do not wait for it.

    SettingsError where *settings* have an option of Spark that the query does not work with.
    """
    spark, log_folder = settings.spark, Path(settings.spark_log_folder)
    session.start_jvm(spark.master, spark.shuffle_partitions, spark.conf, source_of(settings).jars(), log_folder)
