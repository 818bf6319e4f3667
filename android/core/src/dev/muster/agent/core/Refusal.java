package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Refusal is an answer other than success. Only what is signed in it, once verified, may change
 * anything on the device.
 */
final class Refusal extends IOException {
    private static final long serialVersionUID = 1;
    private static final int MAX = 4 << 20;

    static final String CLOCK_SKEW = "clock_skew";
    static final String REPLAYED = "replayed";
    static final String BAD_TOKEN = "bad_token";
    static final String BAD_SIGNATURE = "bad_signature";
    static final String ENDED = "ended";
    static final String NOT_FOUND = "not_found";
    static final String MALFORMED = "malformed";

    final int status;
    final String error;
    final String message;
    final transient Envelope signed; // null: nothing
    final transient List<Envelope> keys;
    final long retryAfter; // milliseconds; 0: not given
    final String signature; // of the refused request

    private Refusal(int status, String signature, long retryAfter, Fields answer) throws JsonException {
        super("the service refused with status " + status + ": " + (answer == null ? "" : answer.text("error")));
        this.status = status;
        this.signature = signature;
        this.retryAfter = retryAfter;
        error = answer == null ? "" : answer.text("error");
        message = answer == null ? "" : answer.text("message");
        signed = answer == null ? null : Envelope.read(answer.object("signed"));
        keys = answer == null ? new ArrayList<Envelope>() : envelopes(answer, "keys");
    }

    static List<Envelope> envelopes(Fields answer, String name) throws JsonException {
        List<Envelope> all = new ArrayList<>();
        for (Fields f : answer.objects(name)) {
            all.add(Envelope.read(f));
        }
        return all;
    }

    /** read reads a refusal. The answer may not be the service's: what cannot be read is ignored. */
    static Refusal read(Transport.Answer answer, String signature) throws JsonException {
        long retryAfter = 0;
        if (answer.header("Retry-After").matches("[0-9]{1,9}")) {
            retryAfter = Long.parseLong(answer.header("Retry-After")) * 1000;
        }
        try {
            Fields f = Json.object(new String(Disk.readAll(answer.body(), MAX, Link.deadline()), Text.UTF_8));
            return new Refusal(answer.status(), signature, retryAfter, f);
        } catch (IOException e) {
            return new Refusal(answer.status(), signature, retryAfter, null);
        }
    }

    /** in finds the refusal that an error comes of, or returns null. */
    static Refusal in(Throwable e) {
        for (Throwable at = e; at != null; at = at.getCause()) {
            if (at instanceof Refusal) {
                return (Refusal) at;
            }
        }
        return null;
    }
}
