package dev.muster.agent;

import android.app.Activity;
import android.os.Bundle;

/** ComplianceActivity is the last step of the setup wizard on Android 12 and newer. */
public final class ComplianceActivity extends Activity {
    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        Provisioning.finish(this);
    }
}
