package dev.muster.agent;

import android.app.PendingIntent;
import android.content.Intent;
import android.content.pm.PackageInfo;
import android.content.pm.PackageInstaller;
import android.content.pm.PackageManager;
import android.content.pm.Signature;
import dev.muster.agent.core.Installer;
import dev.muster.agent.core.RestartException;
import dev.muster.agent.core.Update;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** AppInstaller installs updates of this app with the rights of the device owner: no user is asked. */
final class AppInstaller implements Installer {
    /** NO_INSTALL binds the device owner as well: it is lifted for a session. */
    static final String NO_INSTALL = "no_install_apps";
    /** RESULT is how long Android may take, in milliseconds. */
    private static final long RESULT = 5 * 60_000;

    private final Owner owner;
    private final File lifted; // notes that NO_INSTALL is lifted
    private final long code; // of this process: Android's own number is another once it has installed

    AppInstaller(Owner owner, StateFiles files) {
        this.owner = owner;
        lifted = files.lifted;
        code = installed();
    }

    private long installed() {
        try {
            return owner.context.getPackageManager().getPackageInfo(packageName(), 0).getLongVersionCode();
        } catch (PackageManager.NameNotFoundException e) {
            return 0;
        }
    }

    @Override
    public String packageName() {
        return owner.context.getPackageName();
    }

    @Override
    public long code() {
        return code;
    }

    @Override
    @SuppressWarnings("deprecation") // Android 9 reads the signer of a file in the old way alone
    public void check(File file, Update update) throws IOException {
        PackageManager packages = owner.context.getPackageManager();
        int flags = PackageManager.GET_SIGNING_CERTIFICATES | PackageManager.GET_SIGNATURES;
        PackageInfo found = packages.getPackageArchiveInfo(file.getPath(), flags);
        if (found == null) {
            throw new IOException("the file is no Android app");
        }
        if (!packageName().equals(found.packageName) || found.getLongVersionCode() != update.code || update.code <= code) {
            throw new IOException("the file is " + found.packageName + " with the code " + found.getLongVersionCode()
                    + ", not what the service names");
        }
        try {
            Set<Signature> signers = signers(found);
            if (!signers.isEmpty() && !signers.equals(signers(packages.getPackageInfo(packageName(), flags)))) {
                throw new IOException("another key than that of this app signed the file");
            } // where Android does not tell, it refuses another signer itself
        } catch (PackageManager.NameNotFoundException e) {
            throw new IOException("this app is not installed", e);
        }
    }

    @SuppressWarnings("deprecation")
    private static Set<Signature> signers(PackageInfo info) {
        Signature[] all = info.signingInfo != null ? info.signingInfo.getApkContentsSigners() : info.signatures;
        return new HashSet<>(Arrays.asList(all == null ? new Signature[0] : all));
    }

    @Override
    public void install(File file, Update update) throws IOException {
        PackageInstaller installer = owner.context.getPackageManager().getPackageInstaller();
        for (PackageInstaller.SessionInfo left : installer.getMySessions()) { // of a process that was killed
            installer.abandonSession(left.getSessionId());
        }
        lift();
        int id = 0;
        try {
            id = open(installer, file);
            commit(installer, id);
        } catch (IOException | RuntimeException e) {
            abandon(installer, id);
            throw e;
        } finally {
            restore();
        }
        throw new RestartException(); // Android ends this process
    }

    /** lift lifts NO_INSTALL. That is noted before, so that every start restores it. */
    private void lift() throws IOException {
        if (!owner.restricted(NO_INSTALL)) {
            return;
        }
        if (!lifted.createNewFile() && !lifted.exists()) {
            throw new IOException("cannot note that " + NO_INSTALL + " is lifted");
        }
        owner.restrict(NO_INSTALL, false);
    }

    /** restore sets NO_INSTALL again if it was lifted, also by a process before. */
    void restore() {
        if (lifted.exists()) {
            owner.restrict(NO_INSTALL, true);
            lifted.delete();
        }
    }

    private int open(PackageInstaller installer, File file) throws IOException {
        PackageInstaller.SessionParams p = new PackageInstaller.SessionParams(PackageInstaller.SessionParams.MODE_FULL_INSTALL);
        p.setAppPackageName(packageName());
        p.setSize(file.length());
        p.setInstallReason(PackageManager.INSTALL_REASON_POLICY);
        int id = installer.createSession(p);
        try (PackageInstaller.Session session = installer.openSession(id);
                InputStream in = new FileInputStream(file);
                OutputStream out = session.openWrite("app", 0, file.length())) {
            byte[] data = new byte[64 << 10];
            for (int n = in.read(data); n >= 0; n = in.read(data)) {
                out.write(data, 0, n);
            }
            session.fsync(out);
        } catch (IOException | RuntimeException e) {
            abandon(installer, id);
            throw e;
        }
        return id;
    }

    private void commit(PackageInstaller installer, int id) throws IOException {
        int flags = PendingIntent.FLAG_UPDATE_CURRENT | (owner.sdk >= 31 ? PendingIntent.FLAG_MUTABLE : 0); // Android adds the result
        Intent broadcast = new Intent(owner.context, InstallReceiver.class);
        PendingIntent result = PendingIntent.getBroadcast(owner.context, id, broadcast, flags);
        InstallReceiver.expect(id);
        try (PackageInstaller.Session session = installer.openSession(id)) {
            session.commit(result.getIntentSender());
        }
        String refused = InstallReceiver.await(id, RESULT);
        if (refused == null) {
            throw new IOException("Android did not say what came of the installation");
        }
        if (!refused.isEmpty()) {
            throw new IOException(refused);
        }
    }

    private static void abandon(PackageInstaller installer, int id) {
        try {
            if (id != 0) {
                installer.abandonSession(id);
            }
        } catch (RuntimeException e) {
            // It is gone already.
        }
    }
}
