package agentdevice

import (
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// StreamTopic is the topic of hints that devices have opened a wake stream; ids are
// OpenedStream's.
const StreamTopic = "agent-stream"

// OpenedStream is what replicas tell each other of a stream that was opened: the device
// and the sequence number of its request.
func OpenedStream(deviceID string, sequence int64) string {
	return deviceID + " " + strconv.FormatInt(sequence, 10)
}

// ParseOpenedStream returns what OpenedStream was made of; false: it is of another version.
func ParseOpenedStream(id string) (deviceID string, sequence int64, ok bool) {
	deviceID, number, _ := strings.Cut(id, " ")
	sequence, err := strconv.ParseInt(number, 10, 64)
	return deviceID, sequence, err == nil
}

// Place is a place in the queue of a device's wake stream, reserved for one command
// before that is committed. Its methods do not block.
type Place interface {
	// Use queues the command. It is called once, after the commit.
	Use()
	// Leave gives the place back, unless it was used.
	Leave()
}

// StreamCommand is a command that is to go out on a wake stream.
type StreamCommand struct {
	DeviceID string
	// Until is the end of the delivery's lease: after it, the command is not written.
	Until time.Time
	// Seal makes the signed command. It is called when the command is about to be written.
	Seal func() (protocol.Envelope, error)
	// Lost is called, without locks, if a command that was queued was not written, or the
	// device may not have received it.
	Lost func()
}
