package agentserver

import (
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
)

// maxStreamArgs is the limit of the arguments of a command that goes out on a stream, in
// bytes: its envelope is larger, and must stay below protocol.MaxStreamCommand.
const maxStreamArgs = protocol.MaxStreamCommand / 2

// reserve has a new delivery go out on the device's wake stream, if this replica holds one
// that takes commands and has room. The delivery then counts as offered from its insertion
// on, so that no stop cancels what may have been written. If it is lost, the device is
// hinted at, and is offered it at a check-in once the lease has ended.
//
// What ends the relation goes by check-ins alone: the device asks before it obeys, and from
// then on is offered nothing else.
func (l *Server) reserve(d agentdevice.Device, v *agentdevice.Delivery) {
	if l.Streams == nil || d.State != agentdevice.Active || v.Brings != "" || len(v.Args) > maxStreamArgs {
		return
	}
	until, sent := v.CreatedAt.Add(streamLease), *v
	v.Place = l.Streams.Reserve(agentdevice.StreamCommand{
		DeviceID: d.ID, Until: until,
		Seal: func() (protocol.Envelope, error) { return l.sealCommand(d, sent) },
		Lost: func() { l.Waker.Notify(agentdevice.WakeTopic, d.ID) },
	})
	if v.Place != nil {
		v.LeaseUntil = until
	}
}
