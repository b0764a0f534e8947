"""The records of a log in Pulsar as a Python data source of Spark's, by pulsar-client; docs/adr/0007 says why.

Spark loads this module in four processes for each query, one after another, so it imports next to nothing.  What reads
is in streaming.pulsar.stream; the driver's side is streaming.pulsar.log.
"""

from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from streaming.schemas import RECORDS

#: Its name among Spark's formats.
PULSAR: Final = "trimtab-pulsar"


class PulsarRecords(DataSource):
    """The records of the metrics and the result topic; its options are streaming.pulsar.options.PulsarOptions."""

    @classmethod
    def name(cls) -> str:
        """See DataSource."""
        return PULSAR

    def schema(self) -> StructType:
        """See DataSource."""
        return RECORDS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """See DataSource."""
        from streaming.pulsar.options import PulsarOptions
        from streaming.pulsar.stream import PulsarSpans

        return PulsarSpans(PulsarOptions.from_spark(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """See DataSource."""
        from streaming.pulsar.options import PulsarOptions
        from streaming.pulsar.stream import PulsarStream

        return PulsarStream(PulsarOptions.from_spark(self.options))
