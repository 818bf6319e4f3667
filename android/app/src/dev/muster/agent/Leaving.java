package dev.muster.agent;

import dev.muster.agent.core.DeviceException;

/** Leaving remembers that the device was given back, so that the ownership goes as well once the service knows. */
interface Leaving {
    void begin() throws DeviceException;
}
