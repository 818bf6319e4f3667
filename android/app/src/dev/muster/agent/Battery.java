package dev.muster.agent;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.Context;
import android.content.Intent;
import android.net.Uri;
import android.os.PowerManager;
import android.provider.Settings;

/** Battery is the exemption from Doze, which only the user, or adb, can give. Headsets and kiosks may have no screen for it. */
final class Battery {
    private Battery() {}

    private static Intent asks(Context context) {
        return new Intent(Settings.ACTION_REQUEST_IGNORE_BATTERY_OPTIMIZATIONS, Uri.fromParts("package", context.getPackageName(), null));
    }

    /** canAsk reports whether the app lacks the exemption and the device has a screen that gives it. */
    static boolean canAsk(Context context) {
        return !context.getSystemService(PowerManager.class).isIgnoringBatteryOptimizations(context.getPackageName())
                && asks(context).resolveActivity(context.getPackageManager()) != null;
    }

    /** ask shows that screen, and reports whether it could. The activity hears of its end as of the request. */
    static boolean ask(Activity from, int request) {
        try {
            from.startActivityForResult(asks(from), request);
            return true;
        } catch (ActivityNotFoundException | SecurityException e) {
            return false;
        }
    }
}
