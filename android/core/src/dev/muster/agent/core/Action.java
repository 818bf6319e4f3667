package dev.muster.agent.core;

/** Action is a command that the device itself carries out. */
public final class Action {
    /** type is the command's: see Command. */
    public final String type;
    /** commandId is a notification's tag, so that a second delivery replaces the first. */
    public final String commandId;

    /** again: a WIPE that was ordered before has shown no effect for a while. */
    public boolean again;

    private final Object args; // any JSON, or null

    public Action(String type, String commandId, Object args) {
        this.type = type;
        this.commandId = commandId;
        this.args = args;
    }

    /** text is one of the command's arguments, "" where it is absent. It is shown or looked up, never parsed. */
    public String text(String name) throws DeviceException {
        try {
            return args == null ? "" : Fields.of(args).text(name);
        } catch (JsonException e) {
            throw DeviceException.failed("the command's arguments cannot be read");
        }
    }
}
