package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;

/** Vectors checks the core against what the Go agent and the service sign and write. */
public final class Vectors {
    private static int checked;

    public static void main(String[] args) throws IOException {
        Fields all = Json.object(new String(Files.readAllBytes(new File(args[0]).toPath()), Text.UTF_8));
        PublicKey key = PublicKey.read(all.object("key"));
        same("the key's name", all.text("keyName"), key.name());
        check("a key by its name", key.named(key.name()) && key.named(key.spki) && !key.named("sha256:") && !key.named(""));
        key.check();
        for (Fields bad : all.objects("badKeys")) {
            check(bad.text("what"), !can(PublicKey.read(bad.object("key"))));
        }
        Fields r = all.object("request");
        byte[] message = Link.canonical(r.text("method"), r.text("path"), r.text("device"), r.number("time"), r.number("sequence"),
                Text.bytes(r.text("body")));
        same("request", r.text("message"), new String(message, Text.UTF_8));
        check("request's signature", key.verifies(message, r.text("signature")));
        message[0]++;
        check("another message", !key.verifies(message, r.text("signature")));
        Fields e = all.object("enroll");
        same("enroll", e.text("message"),
                new String(Enrollment.message(e.text("token"), key, Text.bytes(e.text("facts")), e.number("time")), Text.UTF_8));
        same("facts as Json writes them", e.text("facts"), Json.write(Json.object(e.text("facts")).map()));
        same("reenroll", e.text("formerMessage"), new String(Enrollment.formerMessage(e.text("former"), Text.bytes(e.text("message"))),
                Text.UTF_8));
        Fields rotate = all.object("rotate");
        same("rotate", rotate.text("message"),
                new String(Rotation.message(rotate.text("device"), key, rotate.number("sequence")), Text.UTF_8));
        envelopes(key, all.objects("envelopes"));
        Trusting.check(all.object("trust"), key);
        journal(all.texts("journal"));
        same("settings under the lock-out guard", all.texts("guarded"), Policy.CONNECTIVITY);
        for (Fields s : all.objects("settled")) {
            check("settled " + s.map(), Settings.settled(s.text("want"), s.text("got")) == s.flag("settled"));
        }
        for (Fields s : all.objects("lines")) {
            same("a line", s.text("line"), Text.line(s.text("text")));
        }
        same("a line of half a pair", "a b", Text.line("a\ud83cb"));
        texts();
        Pacing.check();
        files();
        System.out.println(checked + " checks passed");
    }

    private static void envelopes(PublicKey key, List<Fields> all) throws IOException {
        for (Fields one : all) {
            Envelope sealed = Envelope.read(one.object("envelope"));
            same(sealed.kind, Json.parse(one.text("payload")), sealed.open(key, one.text("kind")).map());
            for (Fields other : all) {
                String kind = other.text("kind");
                check(sealed.kind + " as " + kind, kind.equals(sealed.kind) == opens(sealed, key, kind));
            }
            Envelope relabeled = new Envelope(sealed.kind, sealed.payload, "another", sealed.signature);
            check(sealed.kind + " of another key id", !opens(relabeled, key, sealed.kind));
        }
    }

    private static boolean can(PublicKey key) {
        try {
            key.check();
            return true;
        } catch (JsonException refused) {
            return false;
        }
    }

    private static boolean opens(Envelope e, PublicKey key, String kind) {
        try {
            e.open(key, kind);
            return true;
        } catch (JsonException refused) {
            return false;
        }
    }

    /** journal reads the other agent's lines, and its own again; a changed byte is noticed. */
    private static void journal(List<String> lines) throws IOException {
        File file = File.createTempFile("journal", "");
        StringBuilder text = new StringBuilder();
        for (String line : lines) {
            Entry entry = Journal.parseLine(Text.bytes(line));
            check("line " + line, entry != null);
            byte[] own = Journal.formatLine(entry);
            same("line", Json.parse(line.substring(9)), Json.parse(new String(own, Text.UTF_8).substring(9).trim()));
            byte[] damaged = Text.bytes(line);
            damaged[damaged.length / 2] ^= 1;
            check("a damaged line", Journal.parseLine(damaged) == null);
            text.append(line).append('\n');
        }
        // Damage in the middle costs that line; a torn end costs nothing that had happened.
        Files.write(file.toPath(), Text.bytes("rubbish\n" + text + lines.get(0).substring(0, 20)));
        Journal journal = Journal.open(file, 0);
        check("one damaged line is counted", journal.skipped() == 1);
        check("the last stage counts", journal.entry("c1").is(Entry.CONFIRMED));
        journal.write(Entry.received(new Command("d", "c2", "REBOOT", null, 0, 0), 9));
        journal.close();
        check("what was written is there again", Journal.load(file).entry("c2") != null);
        compaction(file);
        Files.delete(file.toPath());
    }

    /** compaction swaps the file, and what is written next goes to the one that has the name. */
    private static void compaction(File file) throws IOException {
        StringBuilder long60k = new StringBuilder();
        while (long60k.length() < 60 << 10) {
            long60k.append("0123456789");
        }
        Journal journal = Journal.open(file, 0);
        for (int i = 0; i < 40; i++) {
            Entry e = Entry.received(new Command("d", "big", long60k.toString(), null, 0, 0), i);
            journal.write(e);
        }
        check("the journal stays bounded", file.length() < 2 << 20);
        journal.write(Entry.received(new Command("d", "after", "REBOOT", null, 0, 0), 9));
        check("lines after the swap are in the file", Journal.load(file).entry("after") != null);
        journal.close();
        Files.delete(file.toPath());
        forgets(file);
    }

    /** forgets: an agent that runs for months forgets what was finished long ago without a restart. */
    private static void forgets(File file) throws IOException {
        Journal journal = Journal.open(file, 0);
        long day = 24L * 60 * 60 * 1000;
        for (int d = 0; d < 90; d++) {
            Entry[] entries = new Entry[500];
            for (int n = 0; n < entries.length; n++) {
                entries[n] = Entry.received(new Command("d", "d" + d + "-" + n, "REBOOT", null, 0, 0), 0).confirmed(d * day);
            }
            journal.write(entries);
        }
        int known = journal.entries(Entry.CONFIRMED).size();
        check("it remembers 30 days: " + known, known >= 31 * 500 && known <= 62 * 500);
        check("the first is forgotten", journal.entry("d0-0") == null);
        check("the file has " + file.length(), file.length() < 12 << 20);
        journal.close();
    }

    /** texts: what is written is read again, over all code units, alone and side by side. */
    private static void texts() throws IOException {
        StringBuilder all = new StringBuilder();
        for (int unit = 0; unit <= 0xFFFF; unit++) {
            String text = String.valueOf((char) unit);
            if (!text.equals(Json.parse(Json.write(text)))) {
                throw new AssertionError("the code unit " + unit + " is read as another");
            }
            String bytes = new String(Text.bytes(Json.write(text)), Text.UTF_8);
            if (!text.equals(Json.parse(bytes))) {
                throw new AssertionError("the code unit " + unit + " does not pass as UTF-8");
            }
            all.append((char) unit).append((char) (0xD800 + unit % 0x800)).append((char) unit);
        }
        same("all code units", all.toString(), Json.parse(new String(Text.bytes(Json.write(all)), Text.UTF_8)));
        Entry entry = Entry.received(new Command("d", "c", "T", Fields.members("body", "\n\u2028\ud800"), 0, 0), 1)
                .done("FAILED", "a\nb\udc00", 2);
        same("an entry", entry.json(), Journal.parseLine(trimmed(Journal.formatLine(entry))).json());
    }

    private static byte[] trimmed(byte[] line) {
        return Arrays.copyOf(line, line.length - 1);
    }

    private static void files() throws IOException {
        String object = "{\"a\":1}";
        same("a file's checksum", object, Store.unsum(Store.addSum(object)));
        try {
            Store.unsum(Store.addSum(object).replace("1,", "2,"));
            check("a damaged file", false);
        } catch (JsonException e) {
            check("a damaged file", true);
        }
        for (String[] names : Arrays.asList(new String[] {"*.a.test", "x.a.test", "y"}, new String[] {"*.a.test", "x.y.a.test", ""},
                new String[] {"A.test", "a.TEST.", "y"}, new String[] {"a.test", "b.test", ""}, new String[] {"*.test", ".test", ""})) {
            check("host " + names[1] + " by " + names[0], HostNames.covers(names[0], names[1]) == !names[2].isEmpty());
        }
    }

    static void same(String what, Object want, Object got) {
        if (!want.equals(got)) {
            throw new AssertionError(what + ": got " + got + ", want " + want);
        }
        checked++;
    }

    static void check(String what, boolean holds) {
        if (!holds) {
            throw new AssertionError(what);
        }
        checked++;
    }
}
