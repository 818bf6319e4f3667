package dev.muster.agent;

import android.app.Activity;
import android.os.Bundle;

/** ProvisionedActivity is the last step of the setup wizard on Android 9 to 11. */
public final class ProvisionedActivity extends Activity {
    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        Provisioning.finish(this);
    }
}
