package dev.muster.agent;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;
import android.content.pm.PackageInstaller;
import java.util.HashMap;
import java.util.Map;

/** InstallReceiver hears from Android what came of an installation. It is not open to other apps. */
public final class InstallReceiver extends BroadcastReceiver {
    /** RESULTS are the refusals by session: empty, it was installed; null, there is no word yet. */
    private static final Map<Integer, String> RESULTS = new HashMap<>();

    static void expect(int session) {
        synchronized (RESULTS) {
            RESULTS.put(session, null);
        }
    }

    /** await returns why a session was refused, empty if it was not, or null if there is no word in time. */
    static String await(int session, long time) throws java.io.InterruptedIOException {
        long end = System.nanoTime() + time * 1_000_000;
        synchronized (RESULTS) {
            try {
                for (long left = time; RESULTS.get(session) == null && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
                    RESULTS.wait(left);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new java.io.InterruptedIOException("the process ends");
            }
            return RESULTS.remove(session);
        }
    }

    @Override
    public void onReceive(Context context, Intent intent) {
        int session = intent.getIntExtra(PackageInstaller.EXTRA_SESSION_ID, 0);
        int status = intent.getIntExtra(PackageInstaller.EXTRA_STATUS, PackageInstaller.STATUS_FAILURE);
        String message = intent.getStringExtra(PackageInstaller.EXTRA_STATUS_MESSAGE);
        String refused = "";
        if (status == PackageInstaller.STATUS_PENDING_USER_ACTION) {
            refused = "Android asks the user, although this app is the device owner";
        } else if (status != PackageInstaller.STATUS_SUCCESS) {
            refused = "Android refused the installation (" + status + "): " + message;
        }
        synchronized (RESULTS) {
            if (RESULTS.containsKey(session)) {
                RESULTS.put(session, refused);
                RESULTS.notifyAll();
            }
        }
    }
}
