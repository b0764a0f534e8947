package trimtab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
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
 * Spark's own source of whole files (binaryFile), which looks for new ones only where a folder has changed.
 *
 * Spark asks for new files four times a second, and each answer takes 15 microseconds of processor time for each file
 * that is there, new or old.  Everything else is Spark's, offsets in checkpoints included.  The option `folders` names
 * the folders to watch, with a zero byte between them.
 */
public final class WatchedFolder implements StreamSourceProvider {
    private static final String FORMAT = "binaryFile";

    public Tuple2<String, StructType> sourceSchema(
        SQLContext context, Option<StructType> schema, String name, Map<String, String> options) {
        return new Tuple2<>(FORMAT, schema.get());
    }

    public Source createSource(
        SQLContext context, String metadata, Option<StructType> schema, String name, Map<String, String> options) {
        return new Watched((SparkSession) context.sparkSession(), metadata, schema.get(), options);
    }

    private static final class Watched extends FileStreamSource {
        /** A file system may give two changes that follow each other quickly the same time. */
        private static final long SETTLES_NANOS = TimeUnit.SECONDS.toNanos(2);
        /** Whatever a file system says of the times of its folders, new files are found after so long. */
        private static final long LOOKS_NANOS = TimeUnit.SECONDS.toNanos(5);

        private final List<Path> folders = new ArrayList<>();
        private List<FileTime> times = List.of();
        private long changed, looked;
        private boolean hasMore = true;

        Watched(SparkSession spark, String metadata, StructType schema, Map<String, String> options) {
            super(spark, text(options, "path"), FORMAT, schema, none(), metadata, options);
            for (String folder : text(options, "folders").split("\0")) {
                this.folders.add(Path.of(folder));
            }
        }

        private static String text(Map<String, String> options, String name) {
            return CollectionConverters.asJava(options).get(name);
        }

        @SuppressWarnings("unchecked")
        private static Seq<String> none() {
            return (Seq<String>) (Seq<?>) Nil$.MODULE$;
        }

        @Override
        public Offset latestOffset(Offset start, ReadLimit limit) {
            // Asked before Spark looks: what changes while it looks is found the next time.
            List<FileTime> times = this.timesOfFolders();
            long now = System.nanoTime();
            if (!times.equals(this.times)) {
                this.times = times;
                this.changed = now;
            }
            boolean isQuiet = now - this.changed > SETTLES_NANOS && now - this.looked < LOOKS_NANOS;
            if (isQuiet && !this.hasMore) {
                return start;
            }
            this.looked = now;
            Offset end = super.latestOffset(start, limit);
            this.hasMore = !Objects.equals(end, start);
            return end;
        }

        private List<FileTime> timesOfFolders() {
            List<FileTime> found = new ArrayList<>();
            for (Path folder : this.folders) {
                try {
                    found.add(Files.getLastModifiedTime(folder));
                } catch (NoSuchFileException notYet) {
                    found.add(FileTime.fromMillis(0));
                } catch (IOException error) {
                    return List.of(); // Spark is to meet it, too
                }
            }
            return found;
        }
    }
}
