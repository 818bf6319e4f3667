package androidx.test.runner.lifecycle;

/** Stands in for the enum of androidx.test of the same name. */
public enum Stage {
    PRE_ON_CREATE,
    CREATED,
    STARTED,
    RESUMED,
    PAUSED,
    STOPPED,
    RESTARTED,
    DESTROYED
}
