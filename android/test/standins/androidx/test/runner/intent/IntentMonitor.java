package androidx.test.runner.intent;

/** The interface of androidx.test of the same name, without what these tests do not use. */
public interface IntentMonitor {}
