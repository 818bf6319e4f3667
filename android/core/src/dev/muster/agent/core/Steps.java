package dev.muster.agent.core;

/** Steps is called before each durable step, so that tests can end the process there. */
public interface Steps {
    void before(String step);

    /** NONE does nothing. */
    Steps NONE =
            new Steps() {
                @Override
                public void before(String step) {}
            };
}
