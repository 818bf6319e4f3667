package androidx.test.runner.lifecycle;

/** Stands in for the interface of androidx.test of the same name. */
public interface ApplicationLifecycleMonitor {}
