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
