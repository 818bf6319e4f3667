package androidx.test.runner.lifecycle;

/** Stands in for the class of androidx.test of the same name. */
public final class ApplicationLifecycleMonitorRegistry {
    private ApplicationLifecycleMonitorRegistry() {}

    public static void registerInstance(ApplicationLifecycleMonitor monitor) {}
}
