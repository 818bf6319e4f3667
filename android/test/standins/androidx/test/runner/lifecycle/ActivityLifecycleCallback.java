package androidx.test.runner.lifecycle;

import android.app.Activity;

/** Stands in for the interface of androidx.test of the same name. */
public interface ActivityLifecycleCallback {
    void onActivityLifecycleChanged(Activity activity, Stage stage);
}
