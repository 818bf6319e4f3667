package dev.muster.agent.core;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Journal is the agent's memory of commands: an append-only file of lines, each with its checksum,
 * forced to the disk before a step counts.
 */
final class Journal implements Closeable {
    /** REMEMBER is how long the ids of finished commands are kept. */
    static final long REMEMBER = 30L * 24 * 60 * 60 * 1000;

    static final int MAX_LINE = 64 << 10;
    private static final long COMPACT_ABOVE = 1 << 20;

    private final File path;
    private final Map<String, Entry> entries = new LinkedHashMap<>(); // by id, oldest first
    /** unwritten are later steps of entries that are STARTED, by id. */
    private final Map<String, Entry> unwritten = new LinkedHashMap<>();
    RandomAccessFile file; // null: read only
    private long size; // of what is whole on disk
    private long limit = COMPACT_ABOVE;
    private boolean torn; // the file may be longer than size: a write failed
    private boolean swapped; // the folder may still name the file before this one
    private int skipped;

    private Journal(File path) {
        this.path = path;
    }

    /**
     * open reads the journal, or begins one. A last line that is not whole is a write that a crash
     * interrupted: that step had not happened, and the line is dropped. Any other damaged line is
     * the disk's fault: it is passed over and counted, and what follows it is kept.
     */
    static Journal open(File path, long now) throws IOException {
        Journal j = new Journal(path);
        boolean fresh = !path.exists();
        j.file = new RandomAccessFile(path, "rw");
        try {
            if (fresh) {
                Disk.ownerOnly(path);
            }
            j.readFile();
            j.file.setLength(j.size);
            j.forget(now);
        } catch (IOException e) {
            j.file.close();
            throw new IOException("cannot open the journal: " + e.getMessage(), e);
        }
        return j;
    }

    /** load reads the journal and changes nothing. */
    static Journal load(File path) throws IOException {
        Journal j = new Journal(path);
        if (path.exists()) {
            j.readFile();
        }
        return j;
    }

    private void readFile() throws IOException {
        try (InputStream in = new BufferedInputStream(Disk.open(path))) {
            read(in);
        }
    }

    /** read keeps every whole line, notes where the last one ends, and counts those that are damaged. */
    private void read(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        boolean tooLong = false;
        long at = 0;
        for (int b = in.read(); b >= 0; b = in.read()) {
            at++;
            if (b != '\n') {
                tooLong |= line.size() >= MAX_LINE;
                if (!tooLong) {
                    line.write(b);
                }
                continue;
            }
            Entry e = tooLong ? null : parseLine(line.toByteArray());
            if (e != null) {
                keep(e);
                size = at;
            } else {
                skipped++;
            }
            line.reset();
            tooLong = false;
        }
    }

    /** parseLine reads "&lt;crc32 in hexadecimal&gt; &lt;json&gt;", or returns null. */
    static Entry parseLine(byte[] line) {
        if (line.length < 10 || line[8] != ' ') {
            return null;
        }
        byte[] body = Arrays.copyOfRange(line, 9, line.length);
        if (!Disk.checksum(body).equalsIgnoreCase(new String(line, 0, 8, Text.UTF_8))) {
            return null;
        }
        try {
            Entry e = Entry.read(Json.object(new String(body, Text.UTF_8)));
            return e.command.id.isEmpty() ? null : e;
        } catch (JsonException e) {
            return null;
        }
    }

    /** MAX_GROWTH is by how much the later steps of a command may lengthen its line, in bytes. */
    private static final int MAX_GROWTH = 8 << 10;

    /** keeps reports whether a command fits, also with what its later steps add. */
    static boolean keeps(Entry e) {
        return Text.bytes(Json.write(e.json())).length <= MAX_LINE - MAX_GROWTH;
    }

    static byte[] formatLine(Entry e) throws IOException {
        byte[] body = Text.bytes(Json.write(e.json()));
        byte[] line = Text.bytes(Disk.checksum(body) + " " + new String(body, Text.UTF_8) + "\n");
        if (line.length > MAX_LINE) {
            throw new IOException("command " + e.command.id + " is too large for the journal");
        }
        return line;
    }

    /** entry returns the command's entry, or null. */
    synchronized Entry entry(String id) {
        return entries.get(id);
    }

    /** entries returns those of a stage, oldest first, without those of which a later step could not be written. */
    synchronized List<Entry> entries(String stage) {
        List<Entry> found = new ArrayList<>();
        for (Entry e : entries.values()) {
            if (e.is(stage) && !unwritten.containsKey(e.command.id)) {
                found.add(e);
            }
        }
        return found;
    }

    /** settle writes what became of commands that were STARTED, where that could not be written before: the disk was full. */
    synchronized void settle() throws IOException {
        if (!unwritten.isEmpty()) {
            write(unwritten.values().toArray(new Entry[0]));
        }
    }

    /**
     * write records entries and returns when they are on the disk. On failure the journal stays as it was; a step after
     * STARTED, which the device cannot take back, is remembered for settle.
     */
    synchronized void write(Entry... all) throws IOException {
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        for (Entry e : all) {
            lines.write(formatLine(e));
        }
        try {
            appendOrGive(lines.toByteArray());
        } catch (IOException e) {
            for (Entry one : all) {
                Entry before = entries.get(one.command.id);
                if (before != null && before.is(Entry.STARTED)) {
                    unwritten.put(one.command.id, one);
                }
            }
            throw new IOException("cannot write the journal: " + e.getMessage(), e);
        }
        for (Entry e : all) {
            keep(e);
            unwritten.remove(e.command.id);
        }
        if (size > limit) {
            forget(all[all.length - 1].at);
        }
    }

    /** appendOrGive appends, with full storage in the place of the reserve. */
    private void appendOrGive(byte[] lines) throws IOException {
        try {
            append(lines);
        } catch (IOException e) {
            if (!Disk.giveReserve(path.getParentFile())) {
                throw e;
            }
            append(lines);
        }
    }

    /**
     * append puts lines at the end of the file and forces them to the disk. What a failed attempt
     * left behind is cut off, at the latest before the next one: otherwise the next lines would
     * follow half a line, and look whole until the next start.
     */
    private void append(byte[] lines) throws IOException {
        if (swapped) {
            Disk.syncDirectory(path.getParentFile());
            swapped = false;
        }
        if (torn) {
            file.setLength(size);
            torn = false;
        }
        try {
            file.seek(size);
            file.write(lines);
            file.getFD().sync();
        } catch (IOException e) {
            torn = true;
            file.setLength(size);
            torn = false;
            throw e;
        }
        size += lines.length;
    }

    /** skipped is how many damaged lines were passed over when the journal was opened. */
    int skipped() {
        return skipped;
    }

    private void keep(Entry e) {
        entries.put(e.command.id, e.is(Entry.CONFIRMED) ? e.bare() : e);
    }

    /** forget drops what was finished long ago. */
    private synchronized void forget(long now) {
        for (Iterator<Entry> all = entries.values().iterator(); all.hasNext(); ) {
            Entry e = all.next();
            if (e.is(Entry.CONFIRMED) && now - e.at > REMEMBER) {
                all.remove();
            }
        }
        compact();
    }

    /**
     * compact writes the entries as they stand to a new file and swaps it in. Where that fails, on a
     * full disk for instance, the longer file goes on: nothing is missing from it. The new file is opened
     * before it takes the other's name, so that no line can go to a file that has none.
     */
    private void compact() {
        try {
            ByteArrayOutputStream lines = new ByteArrayOutputStream();
            for (Entry e : entries.values()) {
                lines.write(formatLine(e));
            }
            RandomAccessFile before = file;
            file = Disk.swap(path, lines.toByteArray());
            size = lines.size();
            swapped = true;
            before.close(); // replaced; everything in it was synced
            limit = Math.max(COMPACT_ABOVE, 2 * size); // otherwise, where much must be remembered, each line would write it all again
            torn = false;
        } catch (IOException e) {
            limit = size + COMPACT_ABOVE;
        }
    }

    @Override
    public synchronized void close() throws IOException {
        if (file != null) {
            file.close();
        }
    }
}
