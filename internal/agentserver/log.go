package agentserver

import (
	"context"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// KeepLog keeps the log that a command asked the device for, as lines of printable
// UTF-8. It implements agentapi.Service.
func (l *Server) KeepLog(ctx context.Context, d agentdevice.Device, commandID string, text []byte) error {
	lines := validate.CleanLines(string(text))
	err := l.Logs.KeepLog(ctx, d, agentdevice.Log{ID: commandID, At: l.Now(), Bytes: len(lines), Text: lines})
	if fault.CodeOf(err) == fault.NotFound {
		return &protocol.Refusal{Code: protocol.NotFound, Message: "no open command asks this device for its log"}
	}
	return err
}

// unproved is why a command that the device says is done is not; empty: it is.
func unproved(of command.Outstanding, withoutPlace string) string {
	switch {
	case of.Type == string(command.LocationUpdate):
		return withoutPlace
	case of.Type == string(command.UploadLog) && !of.Logged:
		return "the device sent no log"
	}
	return ""
}
