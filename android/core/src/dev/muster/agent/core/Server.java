package dev.muster.agent.core;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

/** Server is the service's address. */
final class Server {
    static final String BASE = "/agent/v2";

    private Server() {}

    /** check refuses a service that is neither https nor on this machine. */
    static void check(String server) throws IOException {
        URI u;
        try {
            u = new URI(server);
        } catch (URISyntaxException e) {
            throw new IOException("the service's address \"" + server + "\" is not a URL", e);
        }
        String host = u.getHost();
        if (host == null) {
            throw new IOException("the service's address \"" + server + "\" is not a URL");
        }
        boolean loopback = host.equals("localhost") || host.equals("[::1]") || host.matches("127(\\.[0-9]{1,3}){3}");
        if (!"https".equals(u.getScheme()) && !("http".equals(u.getScheme()) && loopback)) {
            throw new IOException("the service's address \"" + server + "\" must be https");
        }
    }

    /** url is where a call of the protocol goes. */
    static String url(String server, String path) {
        String prefix = server.endsWith("/") ? server.substring(0, server.length() - 1) : server;
        return prefix + BASE + path;
    }
}
