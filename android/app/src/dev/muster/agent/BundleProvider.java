package dev.muster.agent;

import android.content.ContentProvider;
import android.content.ContentValues;
import android.database.Cursor;
import android.database.MatrixCursor;
import android.net.Uri;
import android.os.Binder;
import android.os.ParcelFileDescriptor;
import android.os.Process;
import dev.muster.agent.core.Code;
import dev.muster.agent.core.Status;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * BundleProvider is how adb's shell hands a code over and sees what came of it (content write, query,
 * read, delete). The manifest asks for a permission that apps cannot have; it looks at the caller as well.
 */
public final class BundleProvider extends ContentProvider {
    private static final int ROOT = 0;
    private static final int SHELL = 2000;

    @Override
    public boolean onCreate() {
        return true;
    }

    private Keeper keeper() {
        int caller = Binder.getCallingUid();
        if (caller != SHELL && caller != ROOT && caller != Process.myUid()) {
            throw new SecurityException("only adb's shell may use this");
        }
        return MusterApp.keeper(getContext());
    }

    private static IllegalStateException refused(IOException e) {
        return new IllegalStateException(e.getMessage());
    }

    /** openFile takes the text of a code at /bundle (w), or gives the log at /log (r). */
    @Override
    public ParcelFileDescriptor openFile(Uri uri, String mode) throws FileNotFoundException {
        final Keeper keeper = keeper();
        if ("/log".equals(uri.getPath()) && mode.equals("r")) {
            return ParcelFileDescriptor.open(keeper.files.log, ParcelFileDescriptor.MODE_READ_ONLY);
        }
        if (!"/bundle".equals(uri.getPath()) || !mode.startsWith("w")) {
            throw new FileNotFoundException("there are /bundle to write and /log to read");
        }
        if (!keeper.owner.owns()) {
            throw new IllegalStateException("this app is not the device owner: run dpm set-device-owner first");
        }
        if (!keeper.takesCode()) {
            throw new IllegalStateException("this device is enrolled already: relinquish it in the service first");
        }
        try {
            ParcelFileDescriptor[] pipe = ParcelFileDescriptor.createPipe();
            final InputStream in = new ParcelFileDescriptor.AutoCloseInputStream(pipe[0]);
            new Thread("bundle") {
                @Override
                public void run() {
                    receive(keeper, in);
                }
            }.start();
            return pipe[1];
        } catch (IOException e) {
            throw new FileNotFoundException("there is no pipe: " + e.getMessage());
        }
    }

    /** receive reads a code to its end and enrolls with it. What is refused is in the state that query returns. */
    static void receive(Keeper keeper, InputStream in) {
        try (InputStream closed = in) {
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            byte[] part = new byte[8192];
            for (int n = closed.read(part); n >= 0; n = closed.read(part)) {
                text.write(part, 0, n);
                if (text.size() > Code.MAX) {
                    throw new IOException("the bundle is too long for a code");
                }
            }
            keeper.take(new String(text.toByteArray(), StandardCharsets.UTF_8));
        } catch (IOException | RuntimeException e) {
            keeper.error("cannot use the bundle", e);
        }
    }

    /** query returns one row: the state, the device's id at the service, the app's version, and what hinders it. */
    @Override
    public Cursor query(Uri uri, String[] projection, String selection, String[] arguments, String order) {
        Keeper keeper = keeper();
        MatrixCursor row = new MatrixCursor(new String[] {"state", "device", "version", "detail"}, 1);
        String device = "";
        try {
            device = Status.read(keeper.files.directory).deviceId;
        } catch (IOException e) {
            // It has none.
        }
        String detail = Collector.oneLine(keeper.trouble());
        row.addRow(new Object[] {keeper.state().name().toLowerCase(Locale.ROOT), device, keeper.version(), detail});
        return row;
    }

    /** delete at /owner ends the ownership of a device that was never enrolled. */
    @Override
    public int delete(Uri uri, String selection, String[] arguments) {
        Keeper keeper = keeper();
        if (!"/owner".equals(uri.getPath())) {
            throw new UnsupportedOperationException("there is /owner to delete");
        }
        try {
            keeper.giveUp();
        } catch (IOException e) {
            throw refused(e);
        }
        return 1;
    }

    @Override
    public String getType(Uri uri) {
        return null;
    }

    @Override
    public Uri insert(Uri uri, ContentValues values) {
        throw new UnsupportedOperationException("write the text of a code to /bundle");
    }

    @Override
    public int update(Uri uri, ContentValues values, String selection, String[] arguments) {
        throw new UnsupportedOperationException("write the text of a code to /bundle");
    }
}
