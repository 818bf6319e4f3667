package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.content.Context;
import android.content.Intent;
import android.os.PersistableBundle;
import dev.muster.agent.core.Json;
import java.io.IOException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Provisioning reads the enrollment code that the setup wizard passes on. */
final class Provisioning {
    private Provisioning() {}

    /**
     * take saves the code of an intent of the setup wizard, for Keeper to enroll with. Several of the wizard's intents
     * have it, in an order that depends on the Android version: a second call only saves it again. Without a code the
     * app waits for one over USB.
     */
    @SuppressWarnings("deprecation") // the variant with a type needs API 33
    static void take(Context context, Intent intent) {
        PersistableBundle extras = intent.getParcelableExtra(DevicePolicyManager.EXTRA_PROVISIONING_ADMIN_EXTRAS_BUNDLE);
        Keeper keeper = MusterApp.keeper(context);
        if (extras == null || keeper.files.enrolled()) {
            return;
        }
        Map<String, Object> texts = new LinkedHashMap<>();
        for (String key : extras.keySet()) {
            Object value = extras.get(key);
            if (value instanceof String) {
                texts.put(key, value);
            }
        }
        try {
            keeper.files.saveCode(Json.write(
                    Collections.singletonMap(DevicePolicyManager.EXTRA_PROVISIONING_ADMIN_EXTRAS_BUNDLE, texts)));
        } catch (IOException e) {
            keeper.error("cannot use the code", e);
        }
    }
}
