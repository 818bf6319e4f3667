import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Enumeration;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Packs an APK from aapt2's output and the dex file: sorted names, one fixed time, no file modes, every entry
 * stored and aligned to four bytes. The same input gives the same bytes on every machine.
 *
 * Usage: java Pack.java base.apk classes.dex out.apk
 */
public final class Pack {
    private static final int LOCAL_HEADER = 30;

    public static void main(String[] args) throws IOException {
        Map<String, byte[]> entries = new TreeMap<>();
        try (ZipFile base = new ZipFile(args[0])) {
            for (Enumeration<? extends ZipEntry> all = base.entries(); all.hasMoreElements();) {
                ZipEntry entry = all.nextElement();
                entries.put(entry.getName(), base.getInputStream(entry).readAllBytes());
            }
        }
        entries.put("classes.dex", Files.readAllBytes(Paths.get(args[1])));
        Files.write(Paths.get(args[2]), pack(entries));
    }

    private static byte[] pack(Map<String, byte[]> entries) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            for (Map.Entry<String, byte[]> e : entries.entrySet()) {
                zip.flush();
                zip.putNextEntry(stored(e.getKey(), e.getValue(), bytes.size()));
                zip.write(e.getValue());
                zip.closeEntry();
            }
        }
        return bytes.toByteArray();
    }

    /** stored describes an entry that begins at the offset: its extra field pads the data to four bytes. */
    private static ZipEntry stored(String name, byte[] data, int offset) {
        CRC32 crc = new CRC32();
        crc.update(data);
        ZipEntry entry = new ZipEntry(name);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(data.length);
        entry.setCrc(crc.getValue());
        entry.setTimeLocal(java.time.LocalDateTime.of(1980, 1, 2, 0, 0));
        int end = offset + LOCAL_HEADER + name.length() + 4; // an empty extra field takes four bytes
        int padding = (4 - end % 4) % 4;
        byte[] extra = new byte[4 + padding];
        extra[0] = 0x35; // the id that zipalign's padding has
        extra[1] = (byte) 0xD9;
        extra[2] = (byte) padding;
        entry.setExtra(extra);
        return entry;
    }
}
