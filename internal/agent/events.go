package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// wakeEvent is the meaning of one line of the wake stream. The zero value only shows that the
// connection is alive.
type wakeEvent struct {
	hint    bool               // the agent is to check in
	command *protocol.Envelope // a command, as in the answer to a check-in; nil: none
}

// readEvents calls each for every line of a stream of server-sent events, until reading
// fails. A command is one line of data after a line with the event's type. Data that is not
// a valid command is a hint: the service offers the command at the next check-in as well.
func readEvents(from io.Reader, each func(wakeEvent)) error {
	lines := bufio.NewReaderSize(from, 256) // small: most agents read only keep-alive comments for hours
	inCommand := false                      // the event that is being read is a command
	for {
		line, err := readLine(lines)
		if err != nil {
			return err
		}
		event := wakeEvent{}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			inCommand = inCommand && len(line) > 0 // an empty line ends the event, a comment does not
		case "event":
			inCommand = string(value) == protocol.CommandEvent
		case "data":
			event.hint = true
			if command := (protocol.Envelope{}); inCommand && json.Unmarshal(value, &command) == nil {
				event = wakeEvent{command: &command}
			}
		}
		each(event)
	}
}

// readLine returns a line without its line break. It cuts a line that is longer than a command can be:
// the padding that the service sends to proxies that buffer can have any length.
func readLine(from *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := from.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if err == nil && long == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		if len(long) <= protocol.MaxStreamCommand {
			long = append(long, part...)
		}
		if err == nil {
			return bytes.TrimRight(long, "\r\n"), nil
		}
	}
}

// maxOffered is how many commands from the stream can wait to be run. The agent gets further ones with a
// check-in.
const maxOffered = 20

// offered queues a command from the stream, and has Run check in. It does not block: a command that the
// queue has no place for is dropped.
func (a *Agent) offered(command protocol.Envelope) {
	select {
	case a.commands <- command:
	default:
	}
	a.Hint()
}

// takeOffered runs the queued commands that do not need the service, before the check-in that
// acknowledges them. A command with a signature by an unknown key waits for that check-in, which may
// announce the key. A command that seems to have expired waits as well (unsure): the device's
// clock may have been set since the last check-in. The caller holds a.mu.
func (a *Agent) takeOffered(ctx context.Context) error {
	var trusted []protocol.Envelope
	for len(a.commands) > 0 { // only this function receives from the channel
		command := <-a.commands
		if a.link.trusts(command.KeyID) {
			trusted = append(trusted, command)
		} else if len(a.unopened) < maxOffered {
			a.unopened = append(a.unopened, command)
		}
	}
	if len(trusted) == 0 {
		return nil
	}
	a.clockUnverified = true
	if err := a.accept(ctx, protocol.CheckinResponse{Commands: trusted}); err != nil {
		return err
	}
	return a.execute(ctx, false)
}
