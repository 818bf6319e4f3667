package dev.muster.agent;

/** ProvisionedActivity is the last step of the setup wizard on Android 9 to 11. */
public final class ProvisionedActivity extends LastStep {
}
