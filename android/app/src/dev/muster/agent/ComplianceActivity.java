package dev.muster.agent;

/** ComplianceActivity is the last step of the setup wizard on Android 12 and newer. */
public final class ComplianceActivity extends LastStep {
}
