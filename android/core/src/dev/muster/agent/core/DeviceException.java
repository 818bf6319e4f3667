package dev.muster.agent.core;

import java.io.IOException;

/** DeviceException is how a device refuses, like the real thing. */
public final class DeviceException extends IOException {
    /** Kind says what a refusal means. */
    public enum Kind {
        /** The device can never do that. */
        UNSUPPORTED,
        /** It has no meaning on the device. */
        NOT_APPLICABLE,
        /**
         * The system below was asked for an ERASE, where only the device's silence proves that it
         * happens.
         */
        ORDERED,
        /** It cannot be seen before the device is unlocked for the first time since its start. */
        LOCKED,
        /** It failed this time. */
        FAILED
    }

    private static final long serialVersionUID = 1;

    public final Kind kind;

    private DeviceException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    public static DeviceException unsupported(String why) {
        return new DeviceException(Kind.UNSUPPORTED, because("this device cannot do that", why));
    }

    public static DeviceException notApplicable(String why) {
        return new DeviceException(Kind.NOT_APPLICABLE, because("this has no meaning on this device", why));
    }

    public static DeviceException noFix() {
        return failed("NO_FIX: the device has no location");
    }

    public static DeviceException ordered() {
        return new DeviceException(Kind.ORDERED, "the system was told to erase the device, which is still there");
    }

    public static DeviceException failed(String why) {
        return new DeviceException(Kind.FAILED, why);
    }

    public static DeviceException locked() {
        return new DeviceException(Kind.LOCKED, "the device was not unlocked since its start");
    }

    /** forGood reports a refusal that another attempt does not change. */
    public boolean forGood() {
        return kind == Kind.UNSUPPORTED || kind == Kind.NOT_APPLICABLE;
    }

    private static String because(String what, String why) {
        return why.isEmpty() ? what : what + ": " + why;
    }
}
