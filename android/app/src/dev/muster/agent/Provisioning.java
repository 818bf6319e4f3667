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

/**
 * Provisioning takes what the setup wizard hands over. Each step of the wizard brings it, in an order
 * that depends on the Android version, so that taking it twice is as good as once.
 */
final class Provisioning {
    private Provisioning() {}

    /** take keeps the code that the wizard read. Without one the owner waits for one over USB. */
    @SuppressWarnings("deprecation") // the form with a type is of API 33
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
