package androidx.test.internal.runner.lifecycle;

import android.app.Activity;
import androidx.test.runner.lifecycle.ActivityLifecycleCallback;
import androidx.test.runner.lifecycle.ActivityLifecycleMonitor;
import androidx.test.runner.lifecycle.Stage;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/** Stands in for the class of androidx.test that Robolectric informs of each activity's stage. */
public final class ActivityLifecycleMonitorImpl implements ActivityLifecycleMonitor {
    private final Map<Activity, Stage> stages = new WeakHashMap<>();

    @Override
    public void addLifecycleCallback(ActivityLifecycleCallback callback) {}

    @Override
    public void removeLifecycleCallback(ActivityLifecycleCallback callback) {}

    @Override
    public Stage getLifecycleStageOf(Activity activity) {
        return stages.get(activity);
    }

    @Override
    public Collection<Activity> getActivitiesInStage(Stage stage) {
        List<Activity> found = new ArrayList<>();
        for (Map.Entry<Activity, Stage> e : stages.entrySet()) {
            if (e.getValue() == stage) {
                found.add(e.getKey());
            }
        }
        return found;
    }

    public void signalLifecycleChange(Stage stage, Activity activity) {
        stages.put(activity, stage);
    }
}
