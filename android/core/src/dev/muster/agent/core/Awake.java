package dev.muster.agent.core;

/** Awake keeps the device awake while there is work. */
public interface Awake {
    /** Held ends with the work. To close it again changes nothing. */
    interface Held extends AutoCloseable {
        @Override
        void close();
    }

    /** hold keeps the device awake until it is closed, for so many milliseconds at most. Any thread may call it. */
    Held hold(long most);

    /** NONE is for machines that do not fall asleep. */
    Awake NONE =
            new Awake() {
                @Override
                public Held hold(long most) {
                    return new Held() {
                        @Override
                        public void close() {}
                    };
                }
            };
}
