package androidx.test.runner.intent;

/** Stands in for the class of androidx.test of the same name. */
public final class IntentMonitorRegistry {
    private IntentMonitorRegistry() {}

    public static void registerInstance(IntentMonitor monitor) {}
}
