package agentserver

import (
	"context"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
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

// unproved says why a command that the device reports as done is not done; empty: it is
// done. withoutPlace is why this check-in brought no place; empty: it brought one.
func unproved(of command.Outstanding, withoutPlace string) string {
	switch {
	case of.Type == string(command.LocationUpdate):
		return withoutPlace
	case of.Type == string(command.UploadLog) && !of.Logged:
		return "the device sent no log"
	}
	return ""
}
