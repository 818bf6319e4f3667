package release_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	"github.com/musterhq/muster/internal/agent/release"
)

var released = release.Statement{Package: "linux-arm64", Version: "1.2.0", Code: 12}

func signed(t testing.TB) ([]byte, ed25519.PublicKey) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file, err := release.Sign([]byte("a program"), released, key)
	if err != nil {
		t.Fatal(err)
	}
	return file, public
}

func TestRead(t *testing.T) {
	t.Parallel()
	file, public := signed(t)
	got, key, err := release.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil || got != released || !key.Equal(public) {
		t.Errorf("%+v, %v", got, err)
	}
	parsed, err := release.ParseKey(release.KeyText(public))
	if err != nil || !parsed.Equal(public) {
		t.Errorf("the key is %v, %v", parsed, err)
	}
}

// Any change of any byte, and any cut, is noticed.
func TestRead_RefusesWhatWasChanged(t *testing.T) {
	t.Parallel()
	file, _ := signed(t)
	for i := range file {
		other := bytes.Clone(file)
		other[i] ^= 1
		if _, _, err := release.Read(bytes.NewReader(other), int64(len(other))); err == nil {
			t.Fatalf("it does not notice byte %d", i)
		}
		if _, _, err := release.Read(bytes.NewReader(file[:i]), int64(i)); err == nil {
			t.Fatalf("it does not notice that %d bytes are left", i)
		}
	}
}
