package provisioning

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"unicode/utf16"

	"rsc.io/qr"
)

const (
	pixelsPerModule = 8
	quietZone       = 4 // modules, as the standard asks
)

// Draw returns text as a QR code: a black and white PNG with a quiet zone.
// Medium error correction is taken where it fits, else low.
func Draw(text []byte) ([]byte, error) {
	code, err := qr.Encode(string(text), qr.M)
	if err != nil {
		code, err = qr.Encode(string(text), qr.L)
	}
	if err != nil {
		return nil, errors.New("the payload is too long for a QR code")
	}
	side := (code.Size + 2*quietZone) * pixelsPerModule
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range code.Size * pixelsPerModule {
		row := picture.Pix[(y+quietZone*pixelsPerModule)*picture.Stride+quietZone*pixelsPerModule:]
		for x := range code.Size * pixelsPerModule {
			if code.Black(x/pixelsPerModule, y/pixelsPerModule) {
				row[x] = 1
			}
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("cannot write the QR code: %w", err)
	}
	return out.Bytes(), nil
}

// ascii writes every character of a JSON text beyond ASCII as \u escapes: the
// same JSON, but a reader need not guess in which encoding a code was written.
func ascii(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}
