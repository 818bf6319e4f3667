package dev.muster.agent.core;

import java.security.cert.CertPathValidatorException;
import java.security.cert.Certificate;
import java.security.cert.CertificateParsingException;
import java.security.cert.PKIXCertPathChecker;
import java.security.cert.X509Certificate;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Set;

/**
 * ServerUsage demands that a path of certificates is for servers wherever one says what it is for. Android's
 * provider refuses an authority's critical extended key usage that no checker has looked at; Java's does not look.
 */
final class ServerUsage extends PKIXCertPathChecker {
    private static final String EXTENDED_KEY_USAGE = "2.5.29.37";
    private static final String SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
    private static final String ANY_USAGE = "2.5.29.37.0";

    @Override
    public void init(boolean forward) throws CertPathValidatorException {
        if (forward) {
            throw new CertPathValidatorException("it goes from the authority to the server only");
        }
    }

    @Override
    public boolean isForwardCheckingSupported() {
        return false;
    }

    @Override
    public Set<String> getSupportedExtensions() {
        return Collections.singleton(EXTENDED_KEY_USAGE);
    }

    @Override
    public void check(Certificate c, Collection<String> unresolved) throws CertPathValidatorException {
        List<String> usages;
        try {
            usages = ((X509Certificate) c).getExtendedKeyUsage();
        } catch (CertificateParsingException e) {
            throw new CertPathValidatorException("its extended key usage cannot be read", e);
        }
        if (usages != null && !usages.contains(SERVER_AUTH) && !usages.contains(ANY_USAGE)) {
            throw new CertPathValidatorException("it is not for servers");
        }
        if (unresolved != null) {
            unresolved.remove(EXTENDED_KEY_USAGE);
        }
    }
}
