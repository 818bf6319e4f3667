package agentserver

import (
	"context"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
)

// Hear answers a check-in of a device as if its signature had been checked.
func (l *Server) Hear(ctx context.Context, d agentdevice.Device, reported protocol.CheckinRequest) (protocol.CheckinResponse, error) {
	visited, taken, err := l.Deliveries.Visit(ctx, l.visit(d.ID, d.Key, d.LastSequence+1, reported))
	if err == nil && !taken {
		err = fault.New(fault.Refused, "the sequence number is not taken")
	}
	if err != nil {
		return protocol.CheckinResponse{}, err
	}
	return l.hear(ctx, visited, reported)
}
