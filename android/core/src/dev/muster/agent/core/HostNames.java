package dev.muster.agent.core;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/** HostNames says for which host a certificate is. Only its alternative names count. */
final class HostNames {
    private static final int DNS = 2;
    private static final int IP = 7;

    private HostNames() {}

    static boolean match(X509Certificate c, String host) throws CertificateParsingException {
        Collection<List<?>> names = c.getSubjectAlternativeNames();
        if (names == null) {
            return false;
        }
        String bare = host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
        boolean address = bare.indexOf(':') >= 0 || bare.matches("[0-9]+(\\.[0-9]+){3}");
        for (List<?> name : names) {
            int kind = ((Integer) name.get(0)).intValue();
            if (kind == (address ? IP : DNS) && (address ? sameAddress((String) name.get(1), bare) : covers((String) name.get(1), bare))) {
                return true;
            }
        }
        return false;
    }

    private static boolean sameAddress(String one, String other) {
        try { // both are literals: nothing is looked up
            return InetAddress.getByName(one).equals(InetAddress.getByName(other));
        } catch (UnknownHostException e) {
            return false;
        }
    }

    /** covers reports whether a name, whose first label may be "*", is the host's. */
    static boolean covers(String pattern, String host) {
        String p = pattern.toLowerCase(Locale.ROOT);
        String h = host.toLowerCase(Locale.ROOT);
        if (h.endsWith(".")) {
            h = h.substring(0, h.length() - 1);
        }
        if (!p.startsWith("*.")) {
            return p.equals(h) && !p.isEmpty();
        }
        int dot = h.indexOf('.');
        return dot > 0 && p.length() > 2 && p.substring(1).equals(h.substring(dot));
    }
}
