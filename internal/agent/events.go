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

// wakeEvent is what one line of the wake stream means. The zero event keeps the stream
// alive.
type wakeEvent struct {
	hint    bool               // check in
	command *protocol.Envelope // a command, as a check-in has them; nil: none
}

// readEvents calls each for every line of a stream of server-sent events, until reading
// fails. A command is one line of data after a line with its type. Whatever cannot be read
// as a command is a hint: the service has it for a check-in, too.
func readEvents(from io.Reader, each func(wakeEvent)) error {
	lines := bufio.NewReaderSize(from, 256) // most agents read nothing but comments for hours
	command := false                        // the event that is being read is a command
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
			command = command && len(line) > 0 // an empty line ends the event
		case "event":
			command = string(value) == protocol.CommandEvent
		case "data":
			event.hint = true
			if sealed := (protocol.Envelope{}); command && json.Unmarshal(value, &sealed) == nil {
				event = wakeEvent{command: &sealed}
			}
		}
		each(event)
	}
}

// readLine returns a line without its end. What is longer than a command can be is cut:
// padding against proxies that buffer may have any length.
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

// maxOffered is how many commands of the stream wait to be taken. What is beyond them
// comes with a check-in.
const maxOffered = 20

// offered has Run take a command of the stream. It does not block.
func (a *Agent) offered(command protocol.Envelope) {
	select {
	case a.commands <- command:
	default:
	}
	a.Hint()
}

// takeOffered takes the commands that came on the stream and carries out what does not
// need the service, before the check-in that acknowledges them. What is signed with a key
// that is not known here is left to that check-in: it may announce the key. So is what
// seems late: the device's clock may have been set since the last check-in.
func (a *Agent) takeOffered(ctx context.Context) error {
	var known []protocol.Envelope
	for {
		select {
		case command := <-a.commands:
			if a.link.trusts(command.KeyID) {
				known = append(known, command)
			} else if len(a.unopened) < maxOffered {
				a.unopened = append(a.unopened, command)
			}
			continue
		default:
		}
		break
	}
	if len(known) == 0 {
		return nil
	}
	a.unsure = true
	if err := a.accept(ctx, protocol.CheckinResponse{Commands: known}); err != nil {
		return err
	}
	return a.execute(ctx, false)
}
