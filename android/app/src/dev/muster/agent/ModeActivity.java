package dev.muster.agent;

import android.app.Activity;
import android.app.admin.DevicePolicyManager;
import android.content.Intent;
import android.os.Bundle;
import java.util.List;

/** ModeActivity informs the setup wizard (Android 12 and newer) that this app manages the whole device. */
public final class ModeActivity extends Activity {
    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        Intent asked = getIntent();
        List<Integer> allowed = asked.getIntegerArrayListExtra(DevicePolicyManager.EXTRA_PROVISIONING_ALLOWED_PROVISIONING_MODES);
        if (allowed != null && !allowed.contains(DevicePolicyManager.PROVISIONING_MODE_FULLY_MANAGED_DEVICE)) {
            setResult(RESULT_CANCELED);
        } else {
            Provisioning.take(this, asked);
            Intent answer = new Intent();
            answer.putExtra(DevicePolicyManager.EXTRA_PROVISIONING_MODE, DevicePolicyManager.PROVISIONING_MODE_FULLY_MANAGED_DEVICE);
            setResult(RESULT_OK, answer);
        }
        finish();
    }
}
