package dev.muster.agent.core;

/** Log takes a short constant phrase with what it is about. Nothing secret goes there. */
public interface Log {
    void debug(String what, Object about);

    void info(String what, Object about);

    void warn(String what, Object about);

    void error(String what, Object about);
}
