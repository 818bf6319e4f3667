package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.content.Intent;
import android.content.pm.PackageInfo;
import android.content.pm.PackageInstaller;
import android.content.pm.Signature;
import dev.muster.agent.core.RestartException;
import dev.muster.agent.core.Update;
import dev.muster.agent.core.UpdateText;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;
import org.robolectric.annotation.Config;

/** An update of the app: what is refused before, and what Android and the restriction make of it. */
@Config(sdk = {28, 33, 35}, shadows = {RealDevicePolicyManager.class, StrictInstaller.class})
public final class AppInstallerTest extends Client {
    private AppInstaller installer;
    private File file;

    @Before
    public void file() throws Exception {
        StrictInstaller.fake = fake;
        PackageInfo own = app.getPackageManager().getPackageInfo(app.getPackageName(), 0);
        own.setLongVersionCode(1);
        own.signatures = new Signature[] {new Signature("aa")};
        Shadows.shadowOf(app.getPackageManager()).installPackage(own);
        installer = new AppInstaller(new Owner(app), files);
        file = new File(app.getFilesDir(), "update");
        Files.write(file.toPath(), new byte[100_000]);
    }

    private static Update update(long code) throws Exception {
        return UpdateText.read("{\"package\":\"dev.muster.agent\",\"version\":\"2.0\",\"code\":" + code
                + ",\"file\":{\"sha256\":\"00\",\"size\":100000}}");
    }

    /** install runs an installation of which Android says the status, and returns what came of it. */
    private Exception install(int status, String message) throws Exception {
        Exception[] how = new Exception[1];
        Thread work = new Thread(() -> {
            try {
                installer.install(file, update(2));
            } catch (Exception e) {
                how[0] = e;
            }
        });
        StrictInstaller.last = 0;
        work.start();
        while (work.isAlive()) {
            Intent result = new Intent().putExtra(PackageInstaller.EXTRA_SESSION_ID, StrictInstaller.last)
                    .putExtra(PackageInstaller.EXTRA_STATUS, status).putExtra(PackageInstaller.EXTRA_STATUS_MESSAGE, message);
            new InstallReceiver().onReceive(app, result); // it counts once the session is committed
            work.join(10);
        }
        return how[0];
    }

    @Test
    public void installsWhereUsersMayInstallNothing() throws Exception {
        fake.restrictions.add(AppInstaller.NO_INSTALL);
        assertTrue(install(PackageInstaller.STATUS_SUCCESS, null) instanceof RestartException);
        assertTrue(fake.restrictions.contains(AppInstaller.NO_INSTALL));
        assertFalse(files.lifted.exists());
        assertEquals(app.getPackageName(), StrictInstaller.lastParams.appPackageName);
    }

    @Test
    public void leavesTheRestrictionAloneWhereThereIsNone() throws Exception {
        assertTrue(install(PackageInstaller.STATUS_SUCCESS, null) instanceof RestartException);
        assertFalse(fake.restrictions.contains(AppInstaller.NO_INSTALL));
    }

    @Test
    public void saysWhatAndroidRefused() throws Exception {
        fake.restrictions.add(AppInstaller.NO_INSTALL);
        Exception refused = install(PackageInstaller.STATUS_FAILURE_STORAGE, "INSTALL_FAILED_INSUFFICIENT_STORAGE");
        assertTrue(String.valueOf(refused), refused instanceof IOException && refused.getMessage().contains("INSUFFICIENT_STORAGE"));
        assertTrue(fake.restrictions.contains(AppInstaller.NO_INSTALL));
        assertTrue(app.getPackageManager().getPackageInstaller().getMySessions().isEmpty());
        refused = install(PackageInstaller.STATUS_PENDING_USER_ACTION, null);
        assertTrue(refused.getMessage().contains("asks the user"));
    }

    @Test
    public void aProcessThatWasKilledLeavesNoGap() throws Exception {
        assertTrue(files.lifted.createNewFile() || files.lifted.exists());
        new Keeper(app, new Keys()).start();
        until(() -> !files.lifted.exists());
        assertTrue(fake.restrictions.contains(AppInstaller.NO_INSTALL));
        assertFalse(files.lifted.exists());
    }

    private void check(String name, long code, String signer, long named, String why) throws Exception {
        PackageInfo found = new PackageInfo();
        found.packageName = name;
        found.setLongVersionCode(code);
        found.signatures = signer.isEmpty() ? null : new Signature[] {new Signature(signer)};
        Shadows.shadowOf(app.getPackageManager()).setPackageArchiveInfo(file.getPath(), found);
        try {
            installer.check(file, update(named));
            assertEquals(why, "");
        } catch (IOException refused) {
            assertTrue(refused.getMessage(), !why.isEmpty() && refused.getMessage().contains(why));
        }
    }

    @Test
    public void refusesWhatIsNotNamedHigherOrOfItsSigner() throws Exception {
        check("dev.muster.agent", 2, "aa", 2, "");
        check("dev.muster.agent", 2, "", 2, ""); // Android refuses another signer
        check("dev.muster.agent", 2, "bb", 2, "another key");
        check("dev.muster.agent", 3, "aa", 2, "not what the service names");
        check("dev.muster.agent", 1, "aa", 1, "not what the service names");
        check("other.app", 2, "aa", 2, "not what the service names");
    }

    @Test
    public void refusesWhatIsNoApp() throws Exception {
        try {
            installer.check(file, update(2));
            fail("it takes it");
        } catch (IOException refused) {
            assertTrue(refused.getMessage(), refused.getMessage().contains("no Android app"));
        }
    }
}
