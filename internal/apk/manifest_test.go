package apk_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/musterhq/muster/internal/apk"
)

// chunk is a chunk of binary XML.
func chunk(kind uint16, header, content []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(8+len(header)))
	b = binary.LittleEndian.AppendUint32(b, uint32(8+len(header)+len(content)))
	return append(append(b, header...), content...)
}

func words(all ...uint32) (b []byte) {
	for _, w := range all {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// pool is a pool of strings, in UTF-8 or UTF-16.
func pool(narrow bool, texts ...string) []byte {
	var offsets, data []byte
	flags := uint32(0)
	for _, text := range texts {
		offsets = append(offsets, words(uint32(len(data)))...)
		if narrow {
			flags = 1 << 8
			data = append(append(append(data, byte(len(text)), byte(len(text))), text...), 0)
			continue
		}
		data = binary.LittleEndian.AppendUint16(data, uint16(len(text)))
		for _, u := range append(utf16.Encode([]rune(text)), 0) {
			data = binary.LittleEndian.AppendUint16(data, u)
		}
	}
	return chunk(1, words(uint32(len(texts)), 0, flags, uint32(28+len(offsets)), 0), append(offsets, data...))
}

// manifest is the binary XML of a manifest.
func manifest(narrow bool, name string, code, major uint32) []byte {
	const none = 1<<32 - 1
	texts := pool(narrow, "versionCode", "versionName", "versionCodeMajor", "package", name, "dev.muster.agent", "1.2.0")
	attribute := func(name, kind, value uint32) []byte { return words(none, name, none, kind<<24|8, value) }
	var all []byte
	for _, a := range [][]byte{attribute(0, 0x10, code), attribute(1, 3, 6), attribute(2, 0x10, major), attribute(3, 3, 5)} {
		all = append(all, a...)
	}
	start := append(words(none, 4), 20, 0, 20, 0, 4, 0, 0, 0, 0, 0, 0, 0)
	body := append(texts, chunk(0x180, nil, words(0x0101021b, 0x0101021c, 0x01010576))...)
	body = append(body, chunk(0x100, words(1, none), words(none, none))...)
	return chunk(3, nil, append(body, chunk(0x102, words(1, none), append(start, all...))...))
}

func packed(t testing.TB, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadManifest(t *testing.T) {
	t.Parallel()
	for _, narrow := range []bool{true, false} {
		got, err := apk.ReadManifest(packed(t, "AndroidManifest.xml", manifest(narrow, "manifest", 12, 0)))
		if want := (apk.Manifest{Package: "dev.muster.agent", VersionCode: 12, VersionName: "1.2.0"}); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	good := manifest(true, "manifest", 12, 0)
	for name, data := range map[string][]byte{
		"no ZIP": []byte("text"), "no manifest": packed(t, "a", good), "text": packed(t, "AndroidManifest.xml", []byte("<manifest/>")),
		"no code":         packed(t, "AndroidManifest.xml", manifest(true, "manifest", 0, 0)),
		"major code":      packed(t, "AndroidManifest.xml", manifest(true, "manifest", 1, 1)),
		"another element": packed(t, "AndroidManifest.xml", manifest(true, "resources", 1, 0)),
		"cut":             packed(t, "AndroidManifest.xml", good[:len(good)/2]),
		"too large":       packed(t, "AndroidManifest.xml", append(good, make([]byte, 2<<20)...)),
	} {
		if got, err := apk.ReadManifest(data); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The app that was built names what its build was given.
func TestReadManifest_OfTheApp(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../bin/app/muster-agent.apk")
	if err != nil {
		t.Skip("the app is not built: make app")
	}
	properties, err := os.ReadFile("../../android/version.properties")
	if err != nil {
		t.Fatal(err)
	}
	got, err := apk.ReadManifest(data)
	if err != nil || got.Package != "dev.muster.agent" || !strings.Contains(string(properties), "\nversion="+got.VersionName+"\n") {
		t.Errorf("%+v, %v, want %s", got, err, properties)
	}
}

// Whatever the bytes, they are read or refused.
func FuzzReadManifest(f *testing.F) {
	f.Add(manifest(true, "manifest", 12, 0))
	f.Add(manifest(false, "manifest", 12, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := apk.ReadManifest(packed(t, "AndroidManifest.xml", data)); err == nil && (got.Package == "" || got.VersionCode <= 0) {
			t.Fatalf("%+v", got)
		}
	})
}
