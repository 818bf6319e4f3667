package dev.muster.agent.core;

import java.io.IOException;

/**
 * SupersededException is thrown while another device stands in the inventory as this one. The
 * device keeps its policy and its key, and goes on asking: a person may set that right.
 */
public final class SupersededException extends IOException {
    private static final long serialVersionUID = 1;

    SupersededException() {
        super("another device has enrolled as this one: merge the two in the service, or enroll this one again with a"
                + " token made for its asset");
    }
}
