package dev.muster.agent.core;

/** UpdateText makes updates for tests. */
public final class UpdateText {
    private UpdateText() {}

    /** read is the update that the text names. */
    public static Update read(String text) throws JsonException {
        return Update.read(Json.object(text));
    }
}
