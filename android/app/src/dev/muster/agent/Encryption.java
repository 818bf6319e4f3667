package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import dev.muster.agent.core.DeviceException;

/**
 * Encryption is the rule of ENCRYPTION_POLICY. Android 9 and later always encrypt the storage, so the rule only reads
 * that. It can demand a screen lock, which the user has to set: the setting is pending until then.
 */
final class Encryption extends Rule {
    private static final String WITH_PASSWORD = "ENABLED_WITH_PASSWORD";

    Encryption() {
        super(21);
    }

    @Override
    String read(Owner o) throws DeviceException {
        switch (o.dpm.getStorageEncryptionStatus()) {
            case DevicePolicyManager.ENCRYPTION_STATUS_ACTIVE:
            case DevicePolicyManager.ENCRYPTION_STATUS_ACTIVE_DEFAULT_KEY:
            case DevicePolicyManager.ENCRYPTION_STATUS_ACTIVE_PER_USER:
                break;
            default:
                return "";
        }
        if (!passwordDemanded(o)) {
            return "ENABLED_WITHOUT_PASSWORD";
        }
        if (!o.unlocked()) { // before the first unlock Android does not know
            throw DeviceException.locked();
        }
        return o.dpm.isActivePasswordSufficient() ? WITH_PASSWORD : "";
    }

    @SuppressWarnings("deprecation") // below API 31 there is no other way
    private static boolean passwordDemanded(Owner o) {
        return o.sdk >= 31 ? Since31.passwordDemanded(o.dpm)
                : o.dpm.getPasswordQuality(o.admin) != DevicePolicyManager.PASSWORD_QUALITY_UNSPECIFIED;
    }

    @Override
    @SuppressWarnings("deprecation") // below API 31 there is no other way
    void apply(Owner o, String value) {
        boolean demand = value.equals(WITH_PASSWORD);
        if (o.sdk >= 31) {
            Since31.demandPassword(o.dpm, demand);
        } else {
            o.dpm.setPasswordQuality(o.admin,
                    demand ? DevicePolicyManager.PASSWORD_QUALITY_SOMETHING : DevicePolicyManager.PASSWORD_QUALITY_UNSPECIFIED);
        }
    }
}
