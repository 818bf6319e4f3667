package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/** Stands in for the class of androidx.test that Robolectric registers its instrumentation with. */
public final class InstrumentationRegistry {
    private static Instrumentation instrumentation;

    private InstrumentationRegistry() {}

    public static void registerInstance(Instrumentation instance, Bundle arguments) {
        instrumentation = instance;
    }

    public static Instrumentation getInstrumentation() {
        return instrumentation;
    }
}
