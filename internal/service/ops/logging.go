package ops

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns the logger of a configuration, writing to w.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var lowest slog.Level
	if level != "" {
		if err := lowest.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("MUSTER_LOG_LEVEL %q: use debug, info, warn or error", level)
		}
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: lowest, ReplaceAttr: inSeconds})), nil
	case "text", "":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: lowest})), nil
	default:
		return nil, fmt.Errorf("MUSTER_LOG_FORMAT %q: use text or json", format)
	}
}

// inSeconds writes durations in JSON as numbers that can be compared, with their unit
// in the name: took becomes tookSeconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"Seconds", a.Value.Duration().Seconds())
	}
	return a
}

// reliedOn reports whether other programs read a message in the log: `muster activity verify --heads`, or fail2ban.
func reliedOn(message string) bool { return message == "activity head" || message == "sign-in refused" }

// Reliable returns a logger that writes what other programs read also below the level of log.
func Reliable(log *slog.Logger) *slog.Logger { return slog.New(reliable{log.Handler()}) }

type reliable struct{ slog.Handler }

// Enabled implements slog.Handler. Handle leaves out what is below the level.
func (h reliable) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h reliable) Handle(ctx context.Context, r slog.Record) error {
	if !h.Handler.Enabled(ctx, r.Level) && !reliedOn(r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h reliable) WithAttrs(attrs []slog.Attr) slog.Handler {
	return reliable{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h reliable) WithGroup(name string) slog.Handler { return reliable{h.Handler.WithGroup(name)} }
