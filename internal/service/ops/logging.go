package ops

import (
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
	options := &slog.HandlerOptions{Level: lowest, ReplaceAttr: withUnits}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "text", "":
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("MUSTER_LOG_FORMAT %q: use text or json", format)
	}
}

// withUnits writes durations as 1.5s in JSON too, where they would be
// nanoseconds without a unit.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}
