package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * CommandKey is a key that the service signs with. All but the first that a device learns must come
 * in an envelope of a key that it already trusts.
 */
final class CommandKey {
    /** GRACE is how long a key is trusted after another has followed it, in milliseconds: replicas do not change at one moment. */
    static final long GRACE = 7L * 24 * 60 * 60 * 1000;
    /** AHEAD is how far in the future the beginning of a new key may lie, in milliseconds: clocks differ. */
    static final long AHEAD = 24L * 60 * 60 * 1000;

    final String id;
    final PublicKey key;
    final long notBefore; // Unix milliseconds

    CommandKey(String id, PublicKey key, long notBefore) {
        this.id = id;
        this.key = key;
        this.notBefore = notBefore;
    }

    static CommandKey read(Fields f) throws JsonException {
        return new CommandKey(f.text("id"), PublicKey.read(f.object("key")), f.number("notBefore"));
    }

    static List<CommandKey> readAll(List<Fields> all) throws JsonException {
        List<CommandKey> keys = new ArrayList<>();
        for (Fields f : all) {
            keys.add(read(f));
        }
        return keys;
    }

    Map<String, Object> json() {
        return Fields.members("id", id, "key", key.json(), "notBefore", notBefore);
    }

    /** follow adds the key that the newest of the trusted ones, oldest first, announces, as of now in Unix milliseconds. */
    static List<CommandKey> follow(List<CommandKey> keys, Envelope e, long now) throws IOException {
        CommandKey newest = keys.get(keys.size() - 1);
        if (!e.keyId.equals(newest.id)) {
            throw new IOException("the announcement was not signed by the newest key");
        }
        CommandKey k = read(e.open(newest.key, Envelope.KEY));
        for (CommandKey known : keys) {
            if (known.id.equals(k.id)) {
                throw new IOException("the announced key is known already");
            }
        }
        if (k.notBefore < newest.notBefore) {
            throw new IOException("the key \"" + k.id + "\" begins before the key that it follows");
        }
        if (k.notBefore > now + AHEAD) {
            throw new IOException("the key \"" + k.id + "\" begins too far in the future");
        }
        if (!k.key.algorithm.equals(newest.key.algorithm)) {
            throw new IOException("the key \"" + k.id + "\" uses another algorithm than the key that it follows");
        }
        k.key.check();
        if (k.id.isEmpty()) {
            throw new IOException("the announced key has no id");
        }
        List<CommandKey> all = new ArrayList<>(keys);
        all.add(k);
        return trusted(all, now);
    }

    /**
     * trusted leaves out the keys, oldest first, that were followed longer than GRACE before now. The
     * newest always stays.
     */
    static List<CommandKey> trusted(List<CommandKey> keys, long now) {
        int first = 0;
        while (keys.size() - first > 1 && now > keys.get(first + 1).notBefore + GRACE) {
            first++;
        }
        return new ArrayList<>(keys.subList(first, keys.size()));
    }
}
