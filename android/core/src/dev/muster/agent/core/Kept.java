package dev.muster.agent.core;

import java.io.IOException;

/** Kept is what was logged lately. */
public interface Kept {
    /** MAX is how long it may be, in bytes. */
    int MAX = 256 << 10;

    /** text is UTF-8 without secrets, at most MAX bytes. */
    byte[] text() throws IOException;
}
