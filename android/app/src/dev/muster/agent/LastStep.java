package dev.muster.agent;

import android.app.Activity;
import android.content.Intent;
import android.os.Bundle;

/**
 * LastStep is the last step of the setup wizard: the agent starts and enrolls while the user goes on. It
 * asks once for the exemption from Doze; whatever the user answers, the setup goes on.
 */
abstract class LastStep extends Activity {
    private static final int EXEMPTION = 1; // the only request of this activity

    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        Provisioning.take(this, getIntent());
        MusterApp.keeper(this).start();
        Alarms.schedule(this);
        setResult(RESULT_OK);
        boolean asked = saved != null; // the screen was turned in between: its answer is on the way
        if (!asked && !(Battery.canAsk(this) && Battery.ask(this, EXEMPTION))) {
            finish();
        }
    }

    @Override
    protected void onActivityResult(int request, int result, Intent answer) {
        finish();
    }
}
