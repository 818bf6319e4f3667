package androidx.test.runner.intent;

/** Stands in for the interface of androidx.test of the same name. */
public interface IntentMonitor {}
