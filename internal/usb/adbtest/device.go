// Package adbtest plays what `muster usb` talks to: devices with the services
// that adb has on them, behind a server like adb's own, or behind a daemon (adbd)
// that the real adb server connects to.
package adbtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Shell runs a command line as a device's shell does and returns its exit code.
type Shell func(ctx context.Context, command string, out, errOut io.Writer) int

// Device is a device's side of adb.
type Device struct {
	Serial string
	State  string // as the server lists it; empty: "device"
	Root   string // the directory that stands for "/"
	UID    int    // who files belong to, where the test may choose; 0: the test
	Old    bool   // before Android 7: no shell protocol
	Shell  Shell
}

func (d *Device) state() string {
	if d.State == "" {
		return "device"
	}
	return d.State
}

func (d *Device) features() string {
	if d.Old {
		return "cmd"
	}
	return "cmd,shell_v2"
}

// serve plays one service of the device. granted is called before its first
// byte; an unknown service is an error before that.
func (d *Device) serve(ctx context.Context, service string, granted func() error, conn io.ReadWriter) error {
	switch {
	case strings.HasPrefix(service, "shell,v2,raw:") && !d.Old:
		if err := granted(); err != nil {
			return err
		}
		return d.protocol(ctx, strings.TrimPrefix(service, "shell,v2,raw:"), conn)
	case strings.HasPrefix(service, "shell:"):
		if err := granted(); err != nil {
			return err
		}
		terminal := crlf{conn}
		d.Shell(ctx, strings.TrimPrefix(service, "shell:"), terminal, terminal)
		return nil
	case service == "sync:":
		if err := granted(); err != nil {
			return err
		}
		return d.sync(conn)
	}
	return fmt.Errorf("unknown service %q", service)
}

func (d *Device) protocol(ctx context.Context, command string, conn io.Writer) error {
	code := d.Shell(ctx, command, frames{conn, 1}, frames{conn, 2})
	_, err := conn.Write([]byte{3, 1, 0, 0, 0, byte(code)})
	return err
}

// frames writes in the shell protocol.
type frames struct {
	to io.Writer
	id byte
}

// Write implements io.Writer.
func (f frames) Write(p []byte) (int, error) {
	_, err := f.to.Write(append(binary.LittleEndian.AppendUint32([]byte{f.id}, uint32(len(p))), p...))
	return len(p), err
}

// crlf writes as through a terminal.
type crlf struct{ to io.Writer }

// Write implements io.Writer.
func (c crlf) Write(p []byte) (int, error) {
	_, err := c.to.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

// sync plays the file service: SEND and STAT of its first version.
func (d *Device) sync(conn io.ReadWriter) error {
	in := bufio.NewReader(conn)
	for {
		id, data, err := packet(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch id {
		case "SEND":
			err = d.receive(in, conn, string(data))
		case "STAT":
			answer := []byte("STAT")
			var mode, size uint32
			if info, err := os.Lstat(d.path(string(data))); err == nil {
				mode, size = 0o100000|uint32(info.Mode().Perm()), uint32(info.Size())
			}
			for _, n := range []uint32{mode, size, 0} {
				answer = binary.LittleEndian.AppendUint32(answer, n)
			}
			_, err = conn.Write(answer)
		default:
			return nil // QUIT
		}
		if err != nil {
			return err
		}
	}
}

func (d *Device) path(path string) string {
	return filepath.Join(d.Root, filepath.Clean("/"+path))
}

// receive takes a file. Like the real daemon it makes the directories above, and
// gives group and everybody what the owner gets.
func (d *Device) receive(in *bufio.Reader, out io.Writer, spec string) error {
	cut := strings.LastIndexByte(spec, ',')
	mode, err := strconv.ParseUint(spec[cut+1:], 0, 32)
	if cut < 0 || err != nil {
		return refuse(out, "bad mode")
	}
	mode &= 0o777
	mode |= mode >> 3 & 0o070
	mode |= mode >> 3 & 0o007
	var content bytes.Buffer
	for {
		id, data, err := packet(in)
		if err != nil {
			return err
		}
		if id == "DONE" {
			break
		}
		content.Write(data)
	}
	if err := d.write(d.path(spec[:cut]), content.Bytes(), fs.FileMode(mode)); err != nil {
		return refuse(out, "couldn't create file: "+err.Error())
	}
	_, err = out.Write([]byte("OKAY\x00\x00\x00\x00"))
	return err
}

func (d *Device) write(path string, content []byte, mode fs.FileMode) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o775); err != nil {
			return err
		}
		if err := d.own(filepath.Dir(path)); err != nil {
			return err
		}
	}
	_ = os.Remove(path)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return d.own(path)
}

func (d *Device) own(path string) error {
	if d.UID == 0 {
		return nil
	}
	return os.Chown(path, d.UID, d.UID)
}

func refuse(out io.Writer, text string) error {
	_, err := out.Write(append(binary.LittleEndian.AppendUint32([]byte("FAIL"), uint32(len(text))), text...))
	return err
}

func packet(in *bufio.Reader) (id string, data []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return "", nil, err
	}
	id, length := string(head[:4]), binary.LittleEndian.Uint32(head[4:])
	if id == "DONE" || id == "QUIT" {
		return id, nil, nil
	}
	data = make([]byte, min(length, 1<<20))
	_, err = io.ReadFull(in, data)
	return id, data, err
}

// HostShell runs command lines with this machine's own shell.
func HostShell(ctx context.Context, command string, out, errOut io.Writer) int {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	c.Stdout, c.Stderr = out, errOut
	err := c.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 126
	}
	return 0
}

// Words reads a command line with this machine's own shell and returns its words.
func Words(ctx context.Context, command string) ([]string, error) {
	said, err := exec.CommandContext(ctx, "/bin/sh", "-c", `printf '%s\0' `+command).Output()
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(said), "\x00"), "\x00"), nil
}
