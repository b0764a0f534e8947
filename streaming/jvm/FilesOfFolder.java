package trimtab;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Files of this machine, as Hadoop has them; but a folder holds plain files alone, with names that all can read.
 *
 * Spark lists what lies deeper, too, although it does not read it: a link to the folder itself, a folder that it may not
 * look into, or a name like day=1 would end the query, or keep it busy for ever.  A named pipe would be waited for.
 */
public final class FilesOfFolder extends LocalFileSystem {
    /**
     * As in controller.adapters.folder.names.  Spark would read a whole batch again for each name that is a pattern, and
     * Hadoop fails with a colon.
     */
    private static final Pattern UNREADABLE = Pattern.compile("[^ -~]|[\\\\{}\\[\\]*?:]");

    @Override
    public FileStatus[] listStatus(Path folder) throws IOException {
        return Arrays.stream(super.listStatus(folder)).filter(this::isRead).toArray(FileStatus[]::new);
    }

    private boolean isRead(FileStatus found) {
        Path path = found.getPath();
        return !UNREADABLE.matcher(path.getName()).find() && Files.isRegularFile(this.pathToFile(path).toPath());
    }
}
