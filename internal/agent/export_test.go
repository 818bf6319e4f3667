package agent

import (
	"context"

	"github.com/musterhq/muster/internal/agentproto"
)

// ApplyTo applies one setting to a device and reads it back, as converging does.
func ApplyTo(ctx context.Context, d Device, id, value string) agentproto.SettingReport {
	return (&Agent{options: Options{Device: d}}).apply(ctx, id, value)
}
