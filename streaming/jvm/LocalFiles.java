package trimtab;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Files of this machine, as Hadoop has them (org.apache.hadoop.fs.local.LocalFs), without a process for each.
 *
 * Where Hadoop's native library is missing, as in PySpark, it starts chmod for each file that it creates, and readlink for
 * each that it renames: dozens of processes for the checkpoint of one micro-batch.  The files are the same.
 */
public final class LocalFiles extends ChecksumFs {
    /** What Hadoop calls. */
    public LocalFiles(URI uri, Configuration conf) throws IOException, URISyntaxException {
        super(new Raw(conf));
    }

    private static final class Raw extends DelegateToFileSystem {
        Raw(Configuration conf) throws IOException, URISyntaxException {
            super(FsConstants.LOCAL_FS_URI, new Plain(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        @SuppressWarnings("deprecation")
        public FsServerDefaults getServerDefaults() throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }

    private static final class Plain extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                String symbols = permission.toString();
                Files.setPosixFilePermissions(this.pathToFile(path).toPath(), PosixFilePermissions.fromString(symbols));
            }
        }

        @Override
        public FileStatus getFileLinkStatus(Path path) throws IOException {
            File file = this.pathToFile(path);
            return Files.isSymbolicLink(file.toPath()) ? super.getFileLinkStatus(path) : this.getFileStatus(path);
        }
    }
}
