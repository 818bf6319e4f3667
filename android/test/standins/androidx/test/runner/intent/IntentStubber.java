package androidx.test.runner.intent;

import android.app.Instrumentation.ActivityResult;
import android.content.Intent;

/** Stands in for the interface of androidx.test of the same name. */
public interface IntentStubber {
    ActivityResult getActivityResultForIntent(Intent intent);
}
