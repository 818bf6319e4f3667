// Package download gets a file that is known by its size and its SHA-256, in ranges that
// go on where an earlier attempt, or an earlier process, has ended.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/durable"
)

// Source asks for the bytes from one offset to another, both included. The answer may
// hold less.
type Source func(ctx context.Context, from, to int64) (*http.Response, error)

// ErrWrong is returned for a file that is whole, and is not the one that was asked for.
// It is gone then.
var ErrWrong = errors.New("the file that was downloaded is not the one that the service signed")

// Fetch puts the file at a path. What it has got so far is beside it, in a file with the
// suffix .part: calling it again goes on there. crash is called before each durable step;
// it may be nil.
func Fetch(ctx context.Context, path string, f protocol.File, source Source, crash func(step string)) error {
	if crash == nil {
		crash = func(string) {}
	}
	if Has(path, f) {
		return nil
	}
	part, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }()
	err = fill(ctx, part, f, source, crash)
	if errors.Is(err, errNoRoom) { // the device needs the room more than this
		return errors.Join(err, os.Remove(part.Name()))
	}
	if err != nil {
		return err
	}
	if !is(part, f) {
		return errors.Join(ErrWrong, os.Remove(part.Name()))
	}
	crash("before whole")
	if err := errors.Join(part.Sync(), os.Rename(part.Name(), path)); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// Has reports whether the whole file is at a path.
func Has(path string, f protocol.File) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return is(file, f)
}

func is(file *os.File, f protocol.File) bool {
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(file, 0, f.Size+1))
	return err == nil && n == f.Size && hex.EncodeToString(sum.Sum(nil)) == f.SHA256
}

// errNoRoom is in the error of a write that failed.
var errNoRoom = errors.New("there is no room for the file")

func fill(ctx context.Context, part *os.File, f protocol.File, source Source, crash func(string)) error {
	at, err := part.Seek(0, io.SeekEnd)
	if err == nil && at > f.Size { // of another file
		at = 0
		_, seek := part.Seek(0, io.SeekStart)
		err = errors.Join(part.Truncate(0), seek)
	}
	for err == nil && at < f.Size {
		crash("before range")
		at, err = next(ctx, part, at, f, source)
	}
	return err
}

// next adds one range. What came of one that was cut is kept.
func next(ctx context.Context, part *os.File, at int64, f protocol.File, source Source) (int64, error) {
	to := min(at+protocol.MaxRange, f.Size) - 1
	answer, err := source(ctx, at, to)
	if err != nil {
		return at, err
	}
	defer func() { _ = answer.Body.Close() }()
	if got := answer.Header.Get("Content-Range"); answer.StatusCode != http.StatusPartialContent ||
		got != fmt.Sprintf("bytes %d-%d/%d", at, to, f.Size) {
		return at, fmt.Errorf("the service answered with status %d and the range %q", answer.StatusCode, got)
	}
	n, err := io.Copy(writer{part}, io.LimitReader(answer.Body, to-at+1))
	if err == nil && n < to-at+1 {
		err = io.ErrUnexpectedEOF
	}
	return at + n, err
}

// writer marks errors of writing.
type writer struct{ file *os.File }

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	if err != nil {
		err = errors.Join(errNoRoom, err)
	}
	return n, err
}
