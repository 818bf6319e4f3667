package androidx.test.runner.intent;

/** Stands in for the class of androidx.test of the same name: no stubs are loaded. */
public final class IntentStubberRegistry {
    private IntentStubberRegistry() {}

    public static boolean isLoaded() {
        return false;
    }

    public static IntentStubber getInstance() {
        throw new IllegalStateException("no stubber is loaded");
    }
}
