package apk_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/apk"
)

// The schemes' ids in a signing block.
const (
	v2 = 0x7109871a
	v3 = 0xf05368c0
)

func certificate(t testing.TB, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Unix(4e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// sized puts its length in four bytes before data.
func sized(data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// scheme is a signature's value with these signers' certificates.
func scheme(signers ...[]byte) []byte {
	var all []byte
	for _, der := range signers {
		signed := append(sized(nil), sized(sized(der))...)
		all = append(all, sized(sized(signed))...)
	}
	return sized(all)
}

// app is a ZIP file without entries, and a signing block before its directory.
func app(pairs map[uint32][]byte) []byte {
	var block []byte
	for id, value := range pairs {
		block = binary.LittleEndian.AppendUint64(block, uint64(4+len(value)))
		block = binary.LittleEndian.AppendUint32(block, id)
		block = append(block, value...)
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(block)+24))
	data := append(append(append(append([]byte{}, size...), block...), size...), "APK Sig Block 42"...)
	end := make([]byte, 22)
	binary.LittleEndian.PutUint32(end, 0x06054b50)
	binary.LittleEndian.PutUint32(end[16:], uint32(len(data)))
	return append(data, end...)
}

func TestParse_ChecksumIsTheCertificates(t *testing.T) {
	t.Parallel()
	der := certificate(t, "Release")
	sum := sha256.Sum256(der)
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	for name, pairs := range map[string]map[uint32][]byte{
		"v2": {v2: scheme(der)}, "v3": {v3: scheme(der)}, "both": {v2: scheme(der), v3: scheme(der)},
		"with another pair": {7: {1}, v2: scheme(der)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apk.Parse(app(pairs))
			if err != nil || got.Checksum != want || got.Signer != "CN=Release" {
				t.Errorf("%s: %+v, %v, want the checksum %s", name, got, err, want)
			}
		})
	}
}

func TestParse_RefusesWhatACodeCannotName(t *testing.T) {
	t.Parallel()
	one, other := certificate(t, "One"), certificate(t, "Other")
	good := app(map[uint32][]byte{v2: scheme(one)})
	damaged := append([]byte{}, good...)
	damaged[0]++
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":           {nil, "no ZIP"},
		"text":              {[]byte(strings.Repeat("text", 100)), "no ZIP"},
		"unsigned":          {app(nil)[:0], "no ZIP"},
		"no scheme":         {app(map[uint32][]byte{7: {1}}), "no signature"},
		"two signers":       {app(map[uint32][]byte{v2: scheme(one, other)}), "more than 1"},
		"schemes differ":    {app(map[uint32][]byte{v2: scheme(one), v3: scheme(other)}), "different certificates"},
		"size damaged":      {damaged, "damaged"},
		"not a certificate": {app(map[uint32][]byte{v2: scheme([]byte("rubbish"))}), "damaged"},
		"cut off":           {app(map[uint32][]byte{v2: scheme(one)[:20]}), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := apk.Parse(test.data); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, %v, want %q", name, got, err, test.want)
			}
		})
	}
}

// The checksum is the digest that apksigner prints for the same file.
func TestOpen_AgreesWithApksigner(t *testing.T) {
	t.Parallel()
	const printed = "de47fa35f99a2cbe8bb6a42df48a2bed08783825a2d00457d9759efbb2e4e009" // apksigner verify --print-certs testdata/signed.apk
	app, err := apk.Open("testdata/signed.apk")
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := base64.RawURLEncoding.DecodeString(app.Checksum); err != nil || hex.EncodeToString(sum) != printed {
		t.Errorf("the checksum is %x, %v, want %s", sum, err, printed)
	}
	if app.Package != "dev.muster.agent" {
		t.Errorf("the package is %q", app.Package)
	}
}

func TestOpen_NamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.apk")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := apk.Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if _, err := apk.Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(app(map[uint32][]byte{v2: scheme(certificate(f, "One"))}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := apk.Parse(data); err == nil && len(got.Checksum) != 43 {
			t.Errorf("checksum %q", got.Checksum)
		}
	})
}
