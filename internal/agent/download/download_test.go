package download_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/musterhq/muster/internal/agent/download"
	"github.com/musterhq/muster/internal/agent/protocol"
)

var whole = bytes.Repeat([]byte("0123456789"), 300_000)

func named(content []byte) protocol.File {
	sum := sha256.Sum256(content)
	return protocol.File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// service answers ranges of a file, changed.
func service(content []byte, requested *int64, change func(body []byte) io.Reader) download.Source {
	return func(_ context.Context, from, to int64) (*http.Response, error) {
		*requested += to - from + 1
		header := http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", from, to, len(content))}}
		return &http.Response{StatusCode: http.StatusPartialContent, Header: header, Body: io.NopCloser(change(content[from : to+1]))}, nil
	}
}

func plain(body []byte) io.Reader { return bytes.NewReader(body) }

// What a cut answer brought is not asked for again, also after a restart.
func TestFetch_GoesOn(t *testing.T) {
	t.Parallel()
	path, requested, n := filepath.Join(t.TempDir(), "update"), int64(0), 0
	cut := service(whole, &requested, func(body []byte) io.Reader {
		if n++; n%2 == 1 {
			return io.MultiReader(bytes.NewReader(body[:len(body)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		return plain(body)
	})
	tries := 0
	for err := io.ErrUnexpectedEOF; err != nil; tries++ {
		if tries > 20 {
			t.Fatal("it does not end")
		}
		err = download.Fetch(t.Context(), path, named(whole), cut, nil)
	}
	if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, whole) {
		t.Fatalf("%d bytes, %v", len(content), err)
	}
	if requested > 2*int64(len(whole)) {
		t.Errorf("it asked for %d bytes", requested)
	}
	before := requested
	if err := download.Fetch(t.Context(), path, named(whole), cut, nil); err != nil || requested != before {
		t.Errorf("it asks for a file that it has: %v", err)
	}
}

// Other bytes are thrown away; what an earlier file left is no part of this one.
func TestFetch_TakesNothingElse(t *testing.T) {
	t.Parallel()
	path, requested := filepath.Join(t.TempDir(), "update"), int64(0)
	if err := os.WriteFile(path+".part", append(bytes.Clone(whole), "more"...), 0o600); err != nil {
		t.Fatal(err)
	}
	other := service(bytes.Repeat([]byte("x"), len(whole)), &requested, plain)
	if err := download.Fetch(t.Context(), path, named(whole), other, nil); !errors.Is(err, download.ErrWrong) {
		t.Errorf("other bytes: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	for name, change := range map[string]func(r *http.Response){
		"another range":  func(r *http.Response) { r.Header.Set("Content-Range", "bytes 5-9/3000000") },
		"another status": func(r *http.Response) { r.StatusCode = http.StatusOK },
		"another size":   func(r *http.Response) { r.Header.Set("Content-Range", "bytes 0-1048575/9") },
	} {
		source := service(whole, &requested, plain)
		err := download.Fetch(t.Context(), path, named(whole), func(ctx context.Context, from, to int64) (*http.Response, error) {
			r, err := source(ctx, from, to)
			change(r)
			return r, err
		}, nil)
		if err == nil || download.Has(path, named(whole)) {
			t.Errorf("%s: it takes that", name)
		}
	}
	longer := service(whole, &requested, func(body []byte) io.Reader {
		return io.MultiReader(plain(body), iotest.OneByteReader(bytes.NewReader(whole)))
	})
	if err := download.Fetch(t.Context(), path, named(whole), longer, nil); err != nil || !download.Has(path, named(whole)) {
		t.Errorf("what is longer than the range is left: %v", err)
	}
}

// Ranges that arrive in another order, or overlap: what is named so is refused and adds
// nothing; what bears the right name and has other bytes is found out by the digest, and is
// thrown away. With an honest service the same file then arrives.
func TestFetch_RangesReorderedOrOverlapping(t *testing.T) {
	t.Parallel()
	content := make([]byte, 3*protocol.MaxRange)
	for i := range content {
		content[i] = byte(i>>8 ^ i>>16*31)
	}
	for name, shift := range map[string]int64{"the next one": protocol.MaxRange, "one that overlaps": protocol.MaxRange / 2,
		"the first again": -protocol.MaxRange} {
		for _, honest := range []bool{true, false} {
			path, requested := filepath.Join(t.TempDir(), "update"), int64(0)
			right := service(content, &requested, plain)
			moved := func(ctx context.Context, from, to int64) (*http.Response, error) {
				size := to - from
				other := min(max(from+shift, 0), int64(len(content))-1-size)
				r, err := right(ctx, other, other+size)
				if !honest {
					r.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
				}
				return r, err
			}
			err := download.Fetch(t.Context(), path, named(content), moved, nil)
			if err == nil || download.Has(path, named(content)) || !honest && !errors.Is(err, download.ErrWrong) {
				t.Errorf("%s, named honestly: %v: %v", name, honest, err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s, named honestly: %v: there is a file", name, honest)
			}
			if err := download.Fetch(t.Context(), path, named(content), right, nil); err != nil || !download.Has(path, named(content)) {
				t.Errorf("%s, named honestly: %v: then from an honest service: %v", name, honest, err)
			}
		}
	}
}

// Full storage: the error of the write is returned, and what there is makes room again.
func TestFetch_WithoutRoom(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	path, requested := filepath.Join(t.TempDir(), "update"), int64(0)
	if err := os.Symlink("/dev/full", path+".part"); err != nil {
		t.Fatal(err)
	}
	if err := download.Fetch(t.Context(), path, named(whole), service(whole, &requested, plain), nil); err == nil {
		t.Fatal("it fits")
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
