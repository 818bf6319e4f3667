package dev.muster.agent.core;

import java.util.List;
import java.util.Map;

/**
 * SafeDevice makes a refusal of whatever else a device throws: a SecurityException of the system
 * below, or a method that it lacks, costs one setting or command, not the agent.
 */
final class SafeDevice implements Device {
    private final Device device;

    SafeDevice(Device device) {
        this.device = device;
    }

    private static DeviceException refusal(Throwable e) {
        DeviceException refused = DeviceException.failed("the system refused: " + e);
        refused.initCause(e);
        return refused;
    }

    @Override
    public Map<String, Object> facts() throws DeviceException {
        try {
            return device.facts();
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public List<String> capabilities() throws DeviceException {
        try {
            return device.capabilities();
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public String bootId() throws DeviceException {
        try {
            return device.bootId();
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public List<String> settings() {
        return device.settings();
    }

    @Override
    public String read(String setting) throws DeviceException {
        try {
            return device.read(setting);
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public void apply(String setting, String value) throws DeviceException {
        try {
            device.apply(setting, value);
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public String act(Action action) throws DeviceException {
        try {
            return device.act(action);
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }

    @Override
    public Report report(Reporting groups) throws DeviceException {
        try {
            return device.report(groups);
        } catch (RuntimeException | LinkageError | VirtualMachineError e) {
            throw refusal(e);
        }
    }
}
