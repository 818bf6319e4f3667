package command

import (
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
)

// Visit is a check-in of a device with Muster's agent.
type Visit struct {
	Device   string
	Key      protocol.PublicKey // that signed the request
	Sequence int64
	Words    []string  // the commands about which the device says something
	Lease    time.Time // until when what is offered is not offered again
	Limit    int       // how many commands are offered at most
}

// Visited is what the store knows of a device that checks in.
type Visited struct {
	Device agentdevice.Device
	// Offered are the commands that are leased to the device with this check-in, oldest first.
	Offered []agentdevice.Delivery
	// Outstanding are those of Visit.Words that the device has not finished, by their ids.
	Outstanding map[string]Outstanding
}

// Outstanding is a command that was kept for its device, which has not finished it. Such a
// command is never given to another asset or caller.
type Outstanding struct {
	Command  Command
	Device   string // that it was delivered to
	Type     string // of the delivery
	Accepted bool   // the device said that it has it
	Logged   bool   // the log that it asks for is kept
}
