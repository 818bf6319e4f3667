package dev.muster.agent.core;

import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.cert.CertPathValidator;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * PinnedTrust accepts the pinned key itself, or a certificate for this very host that a pinned
 * authority has signed, and nothing else.
 */
final class PinnedTrust extends X509ExtendedTrustManager {
    private final List<String> pins;
    private final String host;
    private final SignedTime time;

    PinnedTrust(List<String> pins, String host, SignedTime time) {
        this.pins = pins;
        this.host = host;
        this.time = time;
    }

    /** pin names a certificate's key: it stays the same when a certificate is renewed with the same key. */
    static String pin(X509Certificate c) {
        return Text.encode(Text.sha256(c.getPublicKey().getEncoded()));
    }

    void judge(X509Certificate[] chain) throws CertificateException {
        if (chain == null || chain.length == 0) {
            throw new CertificateException("the service showed no certificate");
        }
        if (pins.contains(pin(chain[0]))) {
            return;
        }
        try {
            throughAuthority(chain);
        } catch (GeneralSecurityException e) {
            throw new CertificateException(
                    "the service's certificate is not the one that this device was given: " + e.getMessage(), e);
        }
    }

    private void throughAuthority(X509Certificate[] chain) throws GeneralSecurityException {
        if (!HostNames.match(chain[0], host)) {
            throw new CertificateException("it is for another host than " + host);
        }
        List<X509Certificate> path = new ArrayList<>();
        X509Certificate authority = climb(chain, path);
        Date now = moment(chain);
        authority.checkValidity(now);
        PKIXParameters parameters = new PKIXParameters(Collections.singleton(new TrustAnchor(authority, null)));
        parameters.setRevocationEnabled(false);
        parameters.setDate(now);
        parameters.addCertPathChecker(new ServerUsage());
        CertPathValidator.getInstance("PKIX").validate(CertificateFactory.getInstance("X.509").generateCertPath(path), parameters);
    }

    /**
     * moment is the first moment at which all of them may be valid. The device's clock has no part in it, so that
     * a wrong one neither locks the device out nor lets an expired certificate in.
     */
    private Date moment(X509Certificate[] chain) {
        long at = time.passed();
        for (X509Certificate c : chain) {
            at = Math.max(at, c.getNotBefore().getTime());
        }
        return new Date(at);
    }

    /** climb collects the certificates from the host's own up to a pinned authority, which it returns. */
    private X509Certificate climb(X509Certificate[] chain, List<X509Certificate> path) throws CertificateException {
        X509Certificate at = chain[0];
        while (path.size() < chain.length) {
            path.add(at);
            X509Certificate above = null;
            for (int i = 1; i < chain.length; i++) {
                if (chain[i].getBasicConstraints() >= 0 && !path.contains(chain[i]) && signs(chain[i], at)
                        && (above == null || pins.contains(pin(chain[i])))) {
                    above = chain[i];
                }
            }
            if (above == null) {
                break;
            }
            if (pins.contains(pin(above))) {
                return above;
            }
            at = above;
        }
        throw new CertificateException("no authority that this device was given has signed it");
    }

    private static boolean signs(X509Certificate above, X509Certificate below) {
        if (!above.getSubjectX500Principal().equals(below.getIssuerX500Principal())) {
            return false;
        }
        try {
            below.verify(above.getPublicKey());
            return true;
        } catch (GeneralSecurityException e) {
            return false;
        }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
        judge(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        judge(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        judge(chain);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
        throw new CertificateException("this is not a server");
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        checkClientTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        checkClientTrusted(chain, type);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return new X509Certificate[0];
    }
}
