package adb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Output is what a command on a device wrote, at most 1 MiB of each, and its
// exit code.
type Output struct {
	Out, Err string
	Code     int
}

// Said is the end of what the command wrote, cleaned, for an error message.
func (o Output) Said() string {
	text := clean(o.Err)
	if text == "" {
		text = clean(o.Out)
	}
	if text == "" {
		text = "exit code " + strconv.Itoa(o.Code)
	}
	return text
}

// Run runs one command with its arguments on a device, as the shell user. The
// words arrive as they are: Quote keeps the device's shell from reading them. A
// command that fails is an Output with another code than 0, not an error.
func (s Server) Run(ctx context.Context, serial string, words ...string) (Output, error) {
	command, err := Quote(words...)
	if err != nil {
		return Output{}, err
	}
	features, err := s.Features(ctx, serial)
	if err != nil {
		return Output{}, err
	}
	if !slices.Contains(features, "shell_v2") {
		return s.runPlain(ctx, serial, command)
	}
	l, err := s.open(ctx, "host:transport:"+serial, "shell,v2,raw:"+command)
	if err != nil {
		return Output{}, err
	}
	defer l.close()
	output, err := readOutput(l)
	return output, l.reason(err)
}

// Quote writes words as a POSIX shell, such as Android's, reads them back: each
// within single quotes, in which nothing but a single quote has a meaning.
func Quote(words ...string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			return "", errors.New("an argument with a NUL cannot be handed to a program")
		}
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " "), nil
}

// The frames of the shell protocol.
const (
	frameOut  = 1
	frameErr  = 2
	frameExit = 3
)

// readOutput reads frames (id, length, bytes) until the command's exit code.
func readOutput(r io.Reader) (o Output, err error) {
	var out, said bytes.Buffer
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return o, err
		}
		into, length := io.Discard, int64(binary.LittleEndian.Uint32(head[1:]))
		switch head[0] {
		case frameOut:
			into = &limited{&out}
		case frameErr:
			into = &limited{&said}
		case frameExit:
			var code [1]byte
			if length != 1 {
				return o, errors.New("the device's answer has no exit code")
			}
			_, err := io.ReadFull(r, code[:])
			return Output{out.String(), said.String(), int(code[0])}, err
		}
		if _, err := io.CopyN(into, r, length); err != nil {
			return o, err
		}
	}
}

// runPlain is for devices before Android 7, whose shell tells no exit code and
// mixes both outputs, with a terminal's line ends: the code is asked for.
func (s Server) runPlain(ctx context.Context, serial, command string) (Output, error) {
	const mark = "muster-exit="
	l, err := s.open(ctx, "host:transport:"+serial, "shell:"+command+"; echo "+mark+"$?")
	if err != nil {
		return Output{}, err
	}
	defer l.close()
	var all bytes.Buffer
	if _, err := io.Copy(&all, io.LimitReader(l, maxOutput)); err != nil {
		return Output{}, l.reason(err)
	}
	text := strings.ReplaceAll(all.String(), "\r\n", "\n")
	cut := strings.LastIndex(text, mark)
	if cut < 0 {
		return Output{}, fmt.Errorf("the device's answer has no exit code: %s", clean(text))
	}
	code, err := strconv.ParseUint(strings.TrimSpace(text[cut+len(mark):]), 10, 8)
	if err != nil {
		return Output{}, errors.New("the device's exit code is no number")
	}
	return Output{Out: text[:cut], Code: int(code)}, nil
}

// limited keeps the beginning of what is written to it. The buffer is not
// embedded: copying would find its ReadFrom, which has no limit.
type limited struct{ kept *bytes.Buffer }

// Write implements io.Writer; what is too much is let go.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
