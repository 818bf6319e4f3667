package dev.muster.agent.core;

import java.util.List;
import java.util.Map;

/** Device is the machine under the agent. It refuses with a DeviceException. */
public interface Device {
    /** facts are what the device says of itself when it enrolls, by the protocol's names. */
    Map<String, Object> facts() throws DeviceException;

    /** capabilities are what the device can do, by the protocol's names. */
    List<String> capabilities() throws DeviceException;

    /** bootId differs after every start of the machine. */
    String bootId() throws DeviceException;

    /** settings lists the ids of all settings, also of those it cannot follow. */
    List<String> settings();

    /** read returns a setting's present value, or "" where the device is left to its default. */
    String read(String setting) throws DeviceException;

    /** apply sets a setting; "" takes back what was set before. */
    void apply(String setting, String value) throws DeviceException;

    /**
     * act carries out an action and returns a short text of what came of it. A WIPE that the system has
     * accepted fails with the kind ORDERED: only the device's silence proves that it happens.
     */
    String act(Action action) throws DeviceException;

    /** report collects what the groups name, and nothing else. */
    Report report(Reporting groups) throws DeviceException;
}
