package dev.muster.agent.core;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/** Transport carries a request that is signed to the service. */
public interface Transport {
    /**
     * send makes one request and returns when the answer begins. The caller closes the answer.
     * Redirects are not followed: one could lead a signed request elsewhere.
     *
     * @param silence how long, in milliseconds, the answer may be silent
     */
    Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException;

    /** Answer is what came back. */
    interface Answer extends Closeable {
        int status();

        /** header returns a header's value, or "". */
        String header(String name);

        InputStream body() throws IOException;

        /** abort ends the connection, at once or with the next that comes. Any thread may call it. */
        void abort();
    }
}
