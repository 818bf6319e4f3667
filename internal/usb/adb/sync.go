package adb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxChunk is the most of a file that one packet may hold.
const maxChunk = 64 << 10

// regular marks a regular file in a mode.
const regular = 0o100000

// Push writes a file onto a device, replacing what was there. A device gives the
// group and everybody what mode gives the owner (0600 becomes 0666): what is
// secret belongs into a directory that is closed to them.
func (s Server) Push(ctx context.Context, serial, path string, mode uint32, content io.Reader) error {
	l, err := s.open(ctx, "host:transport:"+serial, "sync:")
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.packet("SEND", fmt.Appendf(nil, "%s,%d", path, regular|mode)); err != nil {
		return l.reason(err)
	}
	if err := l.send(content); err != nil {
		// A device that refuses says so, and stops reading.
		if refused, ok := errors.AsType[*Error](l.settled()); ok {
			err = refused
		}
		return l.reason(err)
	}
	return l.reason(l.settled())
}

// send sends a file's bytes and its end.
func (l *line) send(content io.Reader) error {
	chunk := make([]byte, maxChunk)
	for {
		n, err := io.ReadFull(content, chunk)
		if n > 0 {
			if err := l.packet("DATA", chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			_, err := l.Write(binary.LittleEndian.AppendUint32([]byte("DONE"), 0)) // the time of change: 1970
			return err
		case err != nil:
			return err
		}
	}
}

// packet sends an id, a length and that many bytes.
func (l *line) packet(id string, data []byte) error {
	_, err := l.Write(append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data))), data...))
	return err
}

// settled reads whether the device has the file.
func (l *line) settled() error {
	var head [8]byte
	if _, err := io.ReadFull(l, head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(head[4:])
	switch {
	case string(head[:4]) == "OKAY":
		return nil
	case string(head[:4]) != "FAIL" || length > maxAnswer:
		return errors.New("the device's answer to a file cannot be read")
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, l, int64(length)); err != nil {
		return err
	}
	return &Error{clean(text.String())}
}

// Exists reports whether a device has something at a path that may be looked at.
func (s Server) Exists(ctx context.Context, serial, path string) (bool, error) {
	l, err := s.open(ctx, "host:transport:"+serial, "sync:")
	if err != nil {
		return false, err
	}
	defer l.close()
	if err := l.packet("STAT", []byte(path)); err != nil {
		return false, l.reason(err)
	}
	var told [16]byte // id, mode, size, time
	if _, err := io.ReadFull(l, told[:]); err != nil {
		return false, l.reason(err)
	}
	if string(told[:4]) != "STAT" {
		return false, errors.New("the device's answer about a file cannot be read")
	}
	return binary.LittleEndian.Uint32(told[4:]) != 0, nil
}
