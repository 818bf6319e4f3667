package bridge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/musterhq/muster/internal/surface/envelope"
)

// maxLine bounds a message of the client, in bytes. The service takes less.
const maxLine = 1 << 20

// lineReader passes on the lines that are JSON-RPC messages and answers the
// others itself: the SDK's reader would end at the first of them, and with it
// the client's connection.
type lineReader struct {
	from    *bufio.Reader
	refused *lineWriter
	rest    []byte // of a message that is being passed on
}

// Read implements io.Reader.
func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		if id, wrong := checkLine(line); wrong == nil {
			l.rest = line
		} else if err := l.refused.refuse(id, wrong); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next returns the next line that is not blank, closed by a line feed. Of one
// that is too long it returns the beginning, which is no JSON.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.from.ReadSlice('\n')
		kept := bytes.TrimSpace(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			kept = []byte{'"'}
			_, err = l.from.ReadSlice('\n')
		}
		if len(kept) > 0 {
			return append(bytes.Clone(kept), '\n'), err
		}
		if err != nil {
			return nil, err
		}
	}
}

// checkLine is the error of a line that is not a message that the service takes, with its
// id if that is known; nil for one that can be carried.
func checkLine(line []byte) (id jsontext.Value, wrong *jsonrpc.Error) {
	message, wrong := envelope.Read(line)
	if wrong != nil {
		if wrong.Code == jsonrpc.CodeParseError {
			wrong.Message = fmt.Sprintf("the line is not JSON in UTF-8: send one message a line, of at most %d bytes", maxLine)
		}
		return nil, wrong
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return message.ID, envelope.Invalid("the line is not a JSON-RPC message")
	}
	return nil, nil
}

// lineWriter writes whole lines, of the SDK and of our own, one at a time.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer; p is a whole line.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// Close leaves the writer beneath open: it is the process's own.
func (l *lineWriter) Close() error { return nil }

func (l *lineWriter) refuse(id jsontext.Value, wrong *jsonrpc.Error) error {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "error": wrong})
	if err == nil {
		_, err = l.Write(append(line, '\n'))
	}
	return err
}
