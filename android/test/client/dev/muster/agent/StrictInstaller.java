package dev.muster.agent;

import android.content.pm.PackageInstaller;
import java.io.IOException;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowPackageInstaller;

/** StrictInstaller refuses as PackageInstallerService does: no app installs under no_install_apps, not even the owner. */
@Implements(PackageInstaller.class)
public class StrictInstaller extends ShadowPackageInstaller {
    static FakeDpms fake;
    static PackageInstaller.SessionParams lastParams;
    static volatile int last; // the session that was made last; 0: none

    @Implementation
    @Override
    protected int createSession(PackageInstaller.SessionParams params) throws IOException {
        if (fake.restrictions.contains(AppInstaller.NO_INSTALL)) {
            throw new SecurityException("User restriction prevents installing");
        }
        lastParams = params;
        return last = super.createSession(params);
    }
}
