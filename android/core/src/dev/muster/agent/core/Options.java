package dev.muster.agent.core;

import java.io.File;

/** Options are what an agent runs with. */
public final class Options {
    /** directory holds the device's state. */
    public File directory;

    public String version = "";
    public Device device;
    public KeyStore keys;
    public Transport transport;
    public Clock clock = Clock.SYSTEM;
    public Log log;
    /** kept is what log has written lately, for the service to ask for; null: it is not kept. */
    public Kept kept;
    public Steps steps = Steps.NONE;
    public Awake awake = Awake.NONE;
    /** crash is what ended the process before this one, in one line; empty: nothing did. The service gets it. */
    public String crash = "";
    /** crashReported is called after the service has received crash; null: nothing is. It may be called several times. */
    public Runnable crashReported;
    /** installer installs updates of the agent; null: it reports its version only. */
    public Installer installer;
}
