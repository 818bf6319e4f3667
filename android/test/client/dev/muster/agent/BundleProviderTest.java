package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.database.Cursor;
import android.net.Uri;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.shadows.ShadowBinder;

/** What adb's shell may do with the provider, and others may not. */
public final class BundleProviderTest extends Client {
    private static final Uri BUNDLE = Uri.parse("content://dev.muster.agent.enroll/bundle");
    private static final Uri OWNER = Uri.parse("content://dev.muster.agent.enroll/owner");
    private BundleProvider provider;

    @Before
    public void provider() {
        provider = Robolectric.buildContentProvider(BundleProvider.class).create("dev.muster.agent.enroll").get();
        ShadowBinder.setCallingUid(2000);
    }

    private String refusal(Uri uri, String mode) throws Exception {
        try {
            provider.openFile(uri, mode).close();
            return "taken";
        } catch (IllegalStateException | SecurityException | java.io.FileNotFoundException e) {
            return e.getMessage();
        }
    }

    @Test
    public void otherAppsAreRefused() throws Exception {
        ShadowBinder.setCallingUid(10123);
        assertEquals("only adb's shell may use this", refusal(BUNDLE, "w"));
        try {
            provider.query(BUNDLE, null, null, null, null);
            fail("query");
        } catch (SecurityException e) {
            // As it should be.
        }
        try {
            provider.delete(OWNER, null, null);
            fail("delete");
        } catch (SecurityException e) {
            assertTrue(fake.owner);
        }
    }

    @Test
    public void refusesOnceEnrolled() throws Exception {
        enrolled(app);
        assertTrue(refusal(BUNDLE, "w").contains("enrolled already"));
        BundleProvider.receive(MusterApp.keeper(app), stream(code("https://other.example"))); // a pipe of before
        assertNull(files.code());
        try {
            provider.delete(OWNER, null, null);
            fail("delete");
        } catch (IllegalStateException e) {
            assertTrue(fake.owner);
        }
    }

    /** A device that lost its key takes a code again, over USB as well. */
    @Test
    public void takesACodeOnceItsKeyIsLost() throws Exception {
        enrolled(app);
        Keeper keeper = MusterApp.keeper(app); // there is no Keystore in tests, and so no key
        keeper.start();
        until(() -> keeper.state() == Keeper.State.LOST);
        assertEquals("lost", row()[0]);
        assertNotNull(provider.openFile(BUNDLE, "w"));
    }

    @Test
    public void refusesWithoutOwnership() throws Exception {
        fake.owner = false;
        assertTrue(refusal(BUNDLE, "w").contains("dpm set-device-owner"));
        assertTrue(refusal(Uri.parse("content://dev.muster.agent.enroll/../state/identity.json"), "r").contains("/bundle to write"));
    }

    private static ByteArrayInputStream stream(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }

    private String[] row() {
        try (Cursor c = provider.query(BUNDLE, null, null, null, null)) {
            assertEquals(1, c.getCount());
            c.moveToFirst();
            return new String[] {c.getString(c.getColumnIndex("state")), c.getString(c.getColumnIndex("detail"))};
        }
    }

    @Test
    public void takesACodeAndSaysSo() throws Exception {
        assertEquals("waiting", row()[0]);
        BundleProvider.receive(MusterApp.keeper(app), stream(code("https://muster.invalid")));
        assertEquals("https://muster.invalid", files.code().server);
        assertEquals("enrolling", row()[0]);
    }

    @Test
    public void whatIsNoCodeIsRefusedWithoutItsText() throws Exception {
        for (String text : new String[] {"met_secret", "{\"met_secret\":1}", code("http://muster.example"), new String(new char[70_000])}) {
            BundleProvider.receive(MusterApp.keeper(app), stream(text));
            String detail = row()[1];
            assertTrue(detail, detail.startsWith("cannot use the bundle"));
            assertFalse(detail, detail.contains("met_secret"));
            assertNull(files.code());
        }
    }

    @Test
    public void anOwnerThatNeverEnrolledGoes() throws Exception {
        fake.restrictions.add("no_sms");
        assertEquals(1, provider.delete(OWNER, null, null));
        assertFalse(fake.owner);
        assertEquals("ended", row()[0]);
        assertTrue(fake.took().contains("clearDeviceOwner"));
    }
}
