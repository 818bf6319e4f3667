package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import org.robolectric.annotation.Implements;

/** RealDevicePolicyManager is an empty shadow: every call runs the framework's own client code. */
@Implements(DevicePolicyManager.class)
public final class RealDevicePolicyManager {
}
