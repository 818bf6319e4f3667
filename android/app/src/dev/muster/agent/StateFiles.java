package dev.muster.agent;

import android.content.Context;
import android.util.AtomicFile;
import dev.muster.agent.core.Code;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.NotEnrolledException;
import dev.muster.agent.core.Status;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * StateFiles are the app's files in device-protected storage, which can be read before the first
 * unlock: the agent's state, the code to enroll with, and the note that the device is being given back.
 */
final class StateFiles {
    /** directory is the agent's state. */
    final File directory;

    final File log;
    /** lifted notes that installations are allowed for as long as one of this app runs. */
    final File lifted;
    /** wifiOff notes that a policy switched Wi-Fi off, which was on. */
    final File wifiOff;
    /** strongBox notes that the code of the enrollment asked for keys in the secure element. */
    final File strongBox;
    private final AtomicFile crash;
    private final AtomicFile code;
    private final File leaving;

    StateFiles(Context context) {
        File files = context.createDeviceProtectedStorageContext().getFilesDir();
        directory = new File(files, "state");
        log = new File(files, "log.txt");
        code = new AtomicFile(new File(files, "code.json"));
        crash = new AtomicFile(new File(files, "crash.txt"));
        leaving = new File(files, "leaving");
        lifted = new File(files, "lifted");
        wifiOff = new File(files, "wifi-off");
        strongBox = new File(files, "strong-box");
    }

    /** enrolled reports whether the device has an identity, sound or not. */
    boolean enrolled() {
        try {
            Status.read(directory);
            return true;
        } catch (NotEnrolledException e) {
            return false;
        } catch (IOException damaged) {
            return true;
        }
    }

    /** saveCode keeps the text of a code until the device is enrolled with it. It refuses what is no code. */
    synchronized void saveCode(String text) throws IOException {
        Code.parse(text);
        FileOutputStream out = code.startWrite();
        try {
            out.write(text.getBytes(StandardCharsets.UTF_8));
            code.finishWrite(out);
        } catch (IOException e) {
            code.failWrite(out);
            throw e;
        }
    }

    /** code returns the code to enroll with, or null. What the disk made of one is no code, and goes. */
    synchronized Code code() throws IOException {
        byte[] text;
        try {
            text = code.readFully();
        } catch (FileNotFoundException e) {
            return null;
        }
        try {
            return Code.parse(new String(text, StandardCharsets.UTF_8));
        } catch (IOException damaged) {
            code.delete();
            return null;
        }
    }

    synchronized void dropCode() {
        code.delete();
    }

    /** saveCrash keeps what broke, in one line, until the service has it. */
    synchronized void saveCrash(String what) {
        FileOutputStream out = null;
        try {
            out = crash.startWrite();
            out.write(what.getBytes(StandardCharsets.UTF_8));
            crash.finishWrite(out);
        } catch (IOException e) { // a full disk: it is in the log, if that has room
            crash.failWrite(out);
        }
    }

    /** crash returns what broke, or "". */
    synchronized String crash() {
        try {
            return new String(crash.readFully(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "";
        }
    }

    /** dropCrash forgets what broke, unless another crash was saved since. */
    synchronized void dropCrash(String what) {
        if (crash().equals(what)) {
            crash.delete();
        }
    }

    /** beginLeaving notes that the device is being given back: Keeper ends the ownership once the service knows. */
    void beginLeaving() throws DeviceException {
        try {
            if (!leaving.createNewFile() && !leaving.exists()) {
                throw new IOException("it was not made");
            }
        } catch (IOException e) {
            throw DeviceException.failed("cannot note that the device is given back: " + e.getMessage());
        }
    }

    /** setStrongBox notes where the next keys of this enrollment are made. */
    void setStrongBox(boolean on) {
        try {
            if (on) {
                strongBox.createNewFile();
            } else {
                strongBox.delete();
            }
        } catch (IOException e) {
            // A full disk: the next key is made outside the secure element, as if the device had none.
        }
    }

    boolean leaving() {
        return leaving.exists();
    }

    void left() {
        leaving.delete();
    }
}
