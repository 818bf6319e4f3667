package dev.muster.agent.core;

/** Action is something that a command makes the device do. */
public final class Action {
    /** Kind names an action. */
    public enum Kind {
        SHOW_MESSAGE,
        RESTART,
        POWER_OFF,
        OPEN_APP,
        ERASE,
        LET_GO
    }

    public final Kind kind;
    /** commandId is a notification's tag, so that a second delivery replaces the first. */
    public final String commandId;

    public String title = "";
    public String body = "";
    public String packageName = "";
    /** again: an ERASE that was ordered before has shown no effect for a while. */
    public boolean again;

    public Action(Kind kind, String commandId) {
        this.kind = kind;
        this.commandId = commandId;
    }
}
