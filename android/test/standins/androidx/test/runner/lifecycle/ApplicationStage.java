package androidx.test.runner.lifecycle;

/** Stands in for the enum of androidx.test of the same name. */
public enum ApplicationStage {
    PRE_ON_CREATE,
    CREATED
}
