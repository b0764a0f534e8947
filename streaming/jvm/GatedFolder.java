package trimtab;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's own source of whole files (binaryFile) with a Gate before it.  Everything is Spark's, offsets in checkpoints
 * included; only while the gate is closed there are no new files.  Otherwise Spark lists the folders four times a second,
 * at 15 microseconds of processor time a file, and begins a micro-batch with each file that comes.
 */
public final class GatedFolder implements StreamSourceProvider {
    private static final String FORMAT = "binaryFile";

    public Tuple2<String, StructType> sourceSchema(
        SQLContext context, Option<StructType> schema, String name, Map<String, String> options) {
        return new Tuple2<>(FORMAT, schema.get());
    }

    public Source createSource(
        SQLContext context, String metadata, Option<StructType> schema, String name, Map<String, String> options) {
        return new Gated((SparkSession) context.sparkSession(), metadata, schema.get(), options);
    }

    private static final class Gated extends FileStreamSource {
        /** A query that reads what there is and ends waits for nothing. */
        private boolean isGated = true;

        Gated(SparkSession spark, String metadata, StructType schema, Map<String, String> options) {
            super(spark, path(options), FORMAT, schema, noColumns(), metadata, options);
        }

        private static String path(Map<String, String> options) {
            return CollectionConverters.asJava(options).get("path");
        }

        @SuppressWarnings("unchecked")
        private static Seq<String> noColumns() {
            return (Seq<String>) (Seq<?>) Nil$.MODULE$;
        }

        @Override
        public Offset latestOffset(Offset start, ReadLimit limit) {
            long opened = Gate.opened();
            if (this.isGated && opened == 0) {
                return start;
            }
            int before = this.seenFiles().size();
            Offset end = super.latestOffset(start, limit);
            int taken = this.seenFiles().size() - before;
            if (this.isGated && !(limit instanceof ReadMaxFiles most && taken >= most.maxFiles())) {
                Gate.close(opened); // there were no more
            }
            return end;
        }

        @Override
        public void prepareForTriggerAvailableNow() {
            this.isGated = false;
            super.prepareForTriggerAvailableNow();
        }
    }
}
