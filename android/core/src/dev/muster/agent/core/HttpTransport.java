package dev.muster.agent.core;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.security.GeneralSecurityException;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/**
 * HttpTransport speaks HTTP/1.1. With pins it judges certificates by those, and by nothing else: then
 * neither an authority nor a wrong clock can put another in the service's place.
 */
public final class HttpTransport implements Transport {
    private static final int CONNECT = 30_000; // milliseconds
    /** EXCHANGE is how long a request with its whole answer may take, in milliseconds. */
    static final long EXCHANGE = 2 * 60_000;

    private static final Timer DEADLINES = new Timer("deadlines", true);

    private final List<String> pins;
    private final SignedTime time;
    private SSLSocketFactory factory; // for factoryHost
    private String factoryHost = "";

    /** HttpTransport judges what a pinned authority has signed by the time. */
    public HttpTransport(List<String> pins, SignedTime time) {
        this.pins = pins;
        this.time = time;
    }

    @Override
    public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
        final HttpURLConnection c = (HttpURLConnection) new URL(url).openConnection();
        if (c instanceof HttpsURLConnection && !pins.isEmpty()) {
            trustPins((HttpsURLConnection) c);
        }
        c.setInstanceFollowRedirects(false);
        c.setUseCaches(false);
        c.setConnectTimeout(CONNECT);
        c.setReadTimeout(silence);
        c.setRequestMethod(method);
        for (Map.Entry<String, String> h : headers.entrySet()) {
            c.setRequestProperty(h.getKey(), h.getValue());
        }
        TimerTask late = ends(c);
        DEADLINES.schedule(late, EXCHANGE);
        try {
            if (body.length > 0) {
                c.setDoOutput(true);
                try (OutputStream out = c.getOutputStream()) {
                    out.write(body);
                }
            }
            return new Received(c);
        } catch (RuntimeException e) { // Android's client throws some where a connection is closed under it
            throw new IOException("the connection broke: " + e.getMessage(), e);
        } finally {
            late.cancel();
        }
    }

    /** ends closes a connection whose answer has not begun in time, however slowly something of it comes. */
    static TimerTask ends(final HttpURLConnection c) {
        return new TimerTask() {
            @Override
            public void run() {
                close(c);
            }
        };
    }

    /** close ends a connection. Android's client throws where it is closed by two threads. What a task throws would end DEADLINES. */
    private static void close(HttpURLConnection c) {
        try {
            c.disconnect();
        } catch (RuntimeException | Error e) {
            // It is closed, or will be when it falls silent.
        }
    }

    private void trustPins(HttpsURLConnection c) throws IOException {
        try {
            c.setSSLSocketFactory(factory(c.getURL().getHost()));
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot set up TLS: " + e.getMessage(), e);
        }
        c.setHostnameVerifier(JUDGED);
    }

    /** factory returns the one for a host: connections and sessions are used again only by the factory that made them. */
    private synchronized SSLSocketFactory factory(String host) throws GeneralSecurityException {
        if (!host.equals(factoryHost)) {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[] {new PinnedTrust(pins, host, time)}, null);
            factory = context.getSocketFactory();
            factoryHost = host;
        }
        return factory;
    }

    /** JUDGED leaves the host to PinnedTrust, which has judged it when this is asked. */
    private static final HostnameVerifier JUDGED =
            new HostnameVerifier() {
                @Override
                public boolean verify(String host, SSLSession session) {
                    return true;
                }
            };

    private static final class Received implements Answer {
        private final HttpURLConnection connection;
        private final int status;

        Received(HttpURLConnection connection) throws IOException {
            this.connection = connection;
            this.status = connection.getResponseCode();
            if (status < 0) {
                connection.disconnect();
                throw new IOException("the answer is not HTTP");
            }
        }

        @Override
        public int status() {
            return status;
        }

        @Override
        public String header(String name) {
            String value = connection.getHeaderField(name);
            return value == null ? "" : value;
        }

        @Override
        public InputStream body() throws IOException {
            InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream();
            return in == null ? new ByteArrayInputStream(new byte[0]) : in;
        }

        @Override
        public void close() throws IOException {
            body().close(); // what was read to its end leaves the connection for the next request
        }

        @Override
        public void abort() {
            HttpTransport.close(connection);
        }
    }
}
