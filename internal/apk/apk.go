// Package apk reads from an Android app who signed it: what the QR code of a
// device owner names, so that Android installs that app and no other.
package apk

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// MaxSize is how large an app may be, in bytes.
const MaxSize = 64 << 20

// App is an Android app as it is served. It is not changed after Parse.
type App struct {
	Data []byte
	// Checksum is SHA-256 of the signing certificate, base64url without padding, as
	// PROVISIONING_DEVICE_ADMIN_SIGNATURE_CHECKSUM takes it.
	Checksum string
	// Signer is the subject of the signing certificate.
	Signer string
	// Package is the app's name on a device. Parse leaves it empty.
	Package string
}

// Numbers of the format (source.android.com, "APK signature scheme").
const (
	endSize      = 22 // of the ZIP's end record, without its comment
	endMagic     = 0x06054b50
	maxComment   = 1<<16 - 1
	footerSize   = 24 // size of the signing block and its magic
	schemeV2     = 0x7109871a
	schemeV3     = 0xf05368c0
	blockMagic   = "APK Sig Block 42"
	maxSigners   = 1 // several signers cannot be named in a code
	maxBlockSize = 1 << 20
)

// errForm is returned for what is not a whole signing block.
var errForm = errors.New("its signing block is damaged")

// Open reads an app from a file.
func Open(path string) (*App, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxSize {
		return nil, fmt.Errorf("%s is not an Android app of at most %d bytes", path, MaxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	app, err := whole(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a signed Android app: %w", path, err)
	}
	return app, nil
}

// whole finds out who signed an app, and its name.
func whole(data []byte) (*App, error) {
	app, err := Parse(data)
	if err != nil {
		return nil, err
	}
	manifest, err := ReadManifest(data)
	app.Package = manifest.Package
	return app, err
}

// Parse finds out who signed an app. It does not verify the signature: the device
// does.
func Parse(data []byte) (*App, error) {
	block, err := signingBlock(data)
	if err != nil {
		return nil, err
	}
	var signer *x509.Certificate
	for _, scheme := range []uint32{schemeV3, schemeV2} {
		value, err := entry(block, scheme)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		found, err := certificate(value)
		if err != nil {
			return nil, err
		}
		if signer != nil && !signer.Equal(found) {
			return nil, errors.New("its signature schemes name different certificates: sign it with one key")
		}
		signer = found
	}
	if signer == nil {
		return nil, errors.New("it has no signature of scheme v2 or v3: sign it with apksigner")
	}
	sum := sha256.Sum256(signer.Raw)
	return &App{Data: data, Checksum: base64.RawURLEncoding.EncodeToString(sum[:]), Signer: signer.Subject.String()}, nil
}

// signingBlock returns the pairs of the block that lies before the ZIP's central
// directory.
func signingBlock(data []byte) ([]byte, error) {
	end, err := endRecord(data)
	if err != nil {
		return nil, err
	}
	directory := uint64(binary.LittleEndian.Uint32(data[end+16:]))
	if directory > uint64(end) || directory < footerSize+8 {
		return nil, errors.New("it is no ZIP file")
	}
	footer := data[directory-footerSize : directory]
	if string(footer[8:]) != blockMagic {
		return nil, errors.New("it has no signing block: sign it with apksigner")
	}
	size := binary.LittleEndian.Uint64(footer)
	if size < footerSize || size > maxBlockSize || size+8 > directory {
		return nil, errForm
	}
	start := directory - size - 8
	if binary.LittleEndian.Uint64(data[start:]) != size {
		return nil, errForm
	}
	return data[start+8 : directory-footerSize], nil
}

// endRecord finds where the ZIP's end record begins.
func endRecord(data []byte) (int, error) {
	for at := len(data) - endSize; at >= 0 && at >= len(data)-endSize-maxComment; at-- {
		if binary.LittleEndian.Uint32(data[at:]) == endMagic && at+endSize+int(binary.LittleEndian.Uint16(data[at+20:])) == len(data) {
			return at, nil
		}
	}
	return 0, errors.New("it is no ZIP file")
}

// entry returns a pair's value, or nil where there is none with the id.
func entry(block []byte, id uint32) ([]byte, error) {
	for len(block) > 0 {
		if len(block) < 12 {
			return nil, errForm
		}
		size := binary.LittleEndian.Uint64(block)
		if size < 4 || size > uint64(len(block)-8) {
			return nil, errForm
		}
		if binary.LittleEndian.Uint32(block[8:]) == id {
			return block[12 : 8+size], nil
		}
		block = block[8+size:]
	}
	return nil, nil
}

// next cuts what a length of four bytes precedes off the front. Of damaged data it
// leaves nothing, in which there is nothing to be found either.
func next(data []byte) (value, rest []byte) {
	if len(data) < 4 {
		return nil, nil
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	if size > uint64(len(data)-4) {
		return nil, nil
	}
	return data[4 : 4+size], data[4+size:]
}

// certificate returns the first certificate of the one signer.
func certificate(value []byte) (*x509.Certificate, error) {
	signers, rest := next(value)
	signer, others := next(signers)
	switch {
	case len(rest) > 0:
		return nil, errForm
	case len(others) > 0:
		return nil, fmt.Errorf("more than %d key signed it: a code can name one", maxSigners)
	}
	signed, _ := next(signer)
	_, signed = next(signed) // the digests
	certificates, _ := next(signed)
	first, _ := next(certificates)
	found, err := x509.ParseCertificate(first)
	if err != nil || !bytes.Equal(found.Raw, first) {
		return nil, errForm
	}
	return found, nil
}
