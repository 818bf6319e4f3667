package dev.muster.agent.core;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.zip.CRC32;

/** Disk writes files so that a crash finds them whole. */
final class Disk {
    private Disk() {}

    static byte[] read(File file) throws IOException {
        return Files.readAllBytes(file.toPath());
    }

    /**
     * RESERVE is a file that gives its place up when the storage is full. Without it, a person who fills a
     * device's storage could keep it from noting a wipe, and so from being erased.
     */
    static final String RESERVE = "reserve";

    /** FRESH follows a file's name in that under which it is written before it takes its place. */
    static final String FRESH = ".new-";

    private static final int RESERVE_SIZE = 32 << 10;

    /** keepReserve makes the reserve where it is missing. Without room it goes on without. */
    static void keepReserve(File directory) {
        File reserve = new File(directory, RESERVE);
        if (reserve.exists()) {
            return;
        }
        byte[] data = new byte[RESERVE_SIZE];
        new SecureRandom().nextBytes(data); // no file system can compress this
        try {
            Files.write(reserve.toPath(), data);
            ownerOnly(reserve);
        } catch (IOException e) {
            reserve.delete();
        }
    }

    /** giveReserve frees the reserve's place, and reports whether there was one. */
    static boolean giveReserve(File directory) {
        return new File(directory, RESERVE).delete();
    }

    /** write replaces a file, whole or not at all; with full storage in the place of the reserve. */
    static void write(File file, byte[] data) throws IOException {
        try {
            replace(file, data);
        } catch (IOException e) {
            if (!giveReserve(file.getParentFile())) {
                throw e;
            }
            replace(file, data);
        }
    }

    private static void replace(File file, byte[] data) throws IOException {
        File fresh = File.createTempFile(file.getName() + FRESH, "", file.getParentFile());
        try {
            try (FileOutputStream out = new FileOutputStream(fresh)) {
                ownerOnly(fresh);
                out.write(data);
                out.getFD().sync();
            }
            Files.move(fresh.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(fresh.toPath());
        }
        syncDirectory(file.getParentFile());
    }

    /**
     * swap replaces a file and returns the new one, open. On failure the former is as it was. The caller
     * calls syncDirectory before anything is written to it that must not be lost.
     */
    static RandomAccessFile swap(File file, byte[] data) throws IOException {
        File fresh = File.createTempFile(file.getName() + FRESH, "", file.getParentFile());
        RandomAccessFile out = new RandomAccessFile(fresh, "rw");
        try {
            ownerOnly(fresh);
            out.write(data);
            out.getFD().sync();
            Files.move(fresh.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            out.close();
            Files.deleteIfExists(fresh.toPath());
            throw e;
        }
        return out;
    }

    static void remove(File file) throws IOException {
        if (Files.deleteIfExists(file.toPath())) {
            syncDirectory(file.getParentFile());
        }
    }

    /** makeDirectory makes a folder that is its owner's alone. */
    static void makeDirectory(File directory) throws IOException {
        if (!directory.isDirectory()) {
            Files.createDirectories(directory.toPath());
            ownerOnly(directory);
            directory.setExecutable(true, true);
        }
    }

    static void ownerOnly(File file) {
        // Each call may refuse where the file system has no permissions: no other user exists there.
        file.setReadable(false, false);
        file.setWritable(false, false);
        file.setExecutable(false, false);
        file.setReadable(true, true);
        file.setWritable(true, true);
    }

    /**
     * syncDirectory forces a folder's names to the disk. A system that does not open folders offers no way
     * to: there the file system's own order has to do.
     */
    static void syncDirectory(File directory) throws IOException {
        FileChannel channel;
        try {
            channel = FileChannel.open(directory.toPath(), StandardOpenOption.READ);
        } catch (IOException e) {
            if (directory.isDirectory()) {
                return;
            }
            throw e;
        }
        try (FileChannel opened = channel) {
            opened.force(true);
        }
    }

    /** readAll reads up to a limit, in bytes, and until a deadline by Backoff.elapsed; more is refused, and later. */
    static byte[] readAll(InputStream in, int limit, long deadline) throws IOException {
        byte[] data = new byte[8192];
        int size = 0;
        for (int n = in.read(data); n >= 0; n = in.read(data, size, data.length - size)) {
            size += n;
            if (Backoff.elapsed() > deadline) {
                throw new IOException("cannot read an answer: it takes too long");
            }
            if (size > limit) {
                throw new IOException("cannot read an answer: it is longer than " + limit + " bytes");
            }
            if (size == data.length) {
                data = Arrays.copyOf(data, 2 * size);
            }
        }
        return Arrays.copyOf(data, size);
    }

    static FileInputStream open(File file) throws IOException {
        return new FileInputStream(file);
    }

    /** checksum is CRC-32 (IEEE) in eight hexadecimal digits. */
    static String checksum(byte[] data) {
        CRC32 sum = new CRC32();
        sum.update(data);
        return String.format("%08x", sum.getValue());
    }
}
