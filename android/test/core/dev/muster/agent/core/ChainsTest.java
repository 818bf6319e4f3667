package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.Provider;
import java.security.Security;
import java.security.cert.CertPathValidator;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Collections;
import java.util.List;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.junit.Test;

/** Java's provider and that of Android, Bouncy Castle, take the chains that the Go agent takes, and no others: chains.json. */
public final class ChainsTest {
    private static void judge() throws Exception {
        Fields all = Json.object(new String(Files.readAllBytes(new File(System.getProperty("muster.tests"), "chains.json").toPath()),
                StandardCharsets.UTF_8));
        int judged = 0;
        for (Fields one : all.objects("chains")) {
            List<String> shown = one.texts("shown");
            X509Certificate[] chain = new X509Certificate[shown.size()];
            for (int i = 0; i < chain.length; i++) {
                chain[i] = (X509Certificate) CertificateFactory.getInstance("X.509")
                        .generateCertificate(new ByteArrayInputStream(Text.decode(shown.get(i))));
            }
            SignedTime passed = new SignedTime(new File("/no/such/folder"), one.number("passed"));
            String refused = "";
            try {
                new PinnedTrust(Collections.singletonList(one.text("pin")), all.text("host"), passed).judge(chain);
            } catch (CertificateException e) {
                refused = e.toString();
            }
            assertEquals(one.text("what") + ": " + refused, one.flag("taken"), refused.isEmpty());
            judged++;
        }
        assertTrue(judged + " chains", judged >= 19);
    }

    @Test
    public void javasOwnProvider() throws Exception {
        judge();
    }

    @Test
    public void bouncyCastle() throws Exception {
        Provider castle = new BouncyCastleProvider();
        Security.removeProvider(castle.getName());
        Security.insertProviderAt(castle, 1);
        try {
            assertEquals(castle.getName(), CertPathValidator.getInstance("PKIX").getProvider().getName());
            judge();
        } finally {
            Security.removeProvider(castle.getName());
        }
    }

    /** The latest signed time of an enrolled device counts, and the build's day before that. */
    @Test
    public void theTimeThatHasSurelyPassed() throws Exception {
        Fixture fixture = new Fixture();
        assertEquals(fixture.now, new SignedTime(fixture.directory, 5).passed());
        assertEquals(fixture.now + 1, new SignedTime(fixture.directory, fixture.now + 1).passed());
        assertEquals(5, new SignedTime(new File("/no/such/folder"), 5).passed());
        Files.write(new File(fixture.directory, Store.IDENTITY).toPath(), new byte[10]);
        assertEquals("a damaged one", 5, new SignedTime(fixture.directory, 5).passed());
    }
}
