package dev.muster.agent.core;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Download gets a file that is known by its size and its SHA-256, in ranges that go on where an earlier
 * attempt, or an earlier process, has ended.
 */
final class Download {
    /** Source asks for the bytes from one offset to another, both included. */
    interface Source {
        Transport.Answer range(long from, long to) throws IOException;
    }

    /** WrongException is thrown for a file that is whole, and is not the one that was asked for. It is gone then. */
    static final class WrongException extends IOException {
        private static final long serialVersionUID = 1;

        WrongException() {
            super("the file that was downloaded is not the one that the service signed");
        }
    }

    /** RANGE is how many bytes one request asks for. */
    private static final long RANGE = 1 << 20;

    private Download() {}

    /** part is what there is of a file so far. */
    static File part(File file) {
        return new File(file.getPath() + ".part");
    }

    /** fetch puts the file at its place. Calling it again goes on with what it has got. */
    static void fetch(File file, String sha256, long size, Source source, Steps steps, Clock clock) throws IOException {
        if (has(file, sha256, size)) {
            return;
        }
        File part = part(file);
        try (RandomAccessFile out = new RandomAccessFile(part, "rw")) {
            Disk.ownerOnly(part);
            if (out.length() > size) { // of another file
                out.setLength(0);
            }
            while (out.length() < size) {
                steps.before("before range");
                next(out, out.length(), size, source, part, clock);
            }
            out.getFD().sync();
        }
        if (!has(part, sha256, size)) {
            part.delete();
            throw new WrongException();
        }
        steps.before("before whole");
        Files.move(part.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        Disk.syncDirectory(file.getParentFile());
    }

    /** next adds one range. What came of one that was cut is kept. */
    private static void next(RandomAccessFile out, long from, long size, Source source, File part, Clock clock) throws IOException {
        long to = Math.min(from + RANGE, size) - 1;
        long deadline = clock.elapsed() + HttpTransport.EXCHANGE;
        Transport.Answer answer = source.range(from, to);
        try {
            String got = answer.header("Content-Range");
            if (!got.equals("bytes " + from + "-" + to + "/" + size)) {
                throw new IOException("the service answered with status " + answer.status() + " and another range");
            }
            InputStream in = answer.body();
            byte[] data = new byte[16 << 10];
            out.seek(from);
            for (long left = to - from + 1; left > 0; ) {
                int n = in.read(data, 0, (int) Math.min(left, data.length));
                if (n < 0 || clock.elapsed() > deadline) {
                    throw new IOException("the download was cut, or takes too long");
                }
                write(out, data, n, part);
                left -= n;
            }
        } finally {
            answer.abort(); // what is left of an answer is not waited for
        }
    }

    private static void write(RandomAccessFile out, byte[] data, int n, File part) throws IOException {
        try {
            out.write(data, 0, n);
        } catch (IOException e) {
            part.delete(); // the device needs the room more than this
            throw new IOException("there is no room for the file: " + e.getMessage(), e);
        }
    }

    /** has reports whether the whole file is there. */
    static boolean has(File file, String sha256, long size) throws IOException {
        if (file.length() != size) {
            return false;
        }
        try (FileInputStream in = Disk.open(file)) {
            MessageDigest sum = MessageDigest.getInstance("SHA-256");
            byte[] data = new byte[16 << 10];
            for (int n = in.read(data); n >= 0; n = in.read(data)) {
                sum.update(data, 0, n);
            }
            return Text.hex(sum.digest()).equals(sha256);
        } catch (FileNotFoundException e) {
            return false;
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
