package apk

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
)

// Manifest is what an app says of itself.
type Manifest struct {
	Package     string
	VersionCode int64
	VersionName string
}

// Limits of a manifest, in bytes and in strings.
const (
	maxManifest = 1 << 20
	maxStrings  = 20_000
)

// Numbers of Android's binary XML (frameworks/base, ResourceTypes.h).
const (
	chunkXML       = 0x0003
	chunkStrings   = 0x0001
	chunkResources = 0x0180
	chunkElement   = 0x0102
	utf8Flag       = 1 << 8
	typeString     = 0x03
	typeDecimal    = 0x10
	typeHex        = 0x11
	attrCode       = 0x0101021b // android:versionCode
	attrName       = 0x0101021c // android:versionName
	attrMajor      = 0x01010576 // android:versionCodeMajor
)

var errManifest = errors.New("its manifest cannot be read")

// ReadManifest reads the manifest of an app.
func ReadManifest(data []byte) (Manifest, error) {
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Manifest{}, errors.New("it is no ZIP file")
	}
	file, err := files.Open("AndroidManifest.xml")
	if err != nil {
		return Manifest{}, errors.New("it has no manifest")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err = errors.Join(err, file.Close()); err != nil || len(text) > maxManifest {
		return Manifest{}, errManifest
	}
	return parseManifest(text)
}

// parseManifest reads binary XML as far as its first element, which must be manifest.
func parseManifest(data []byte) (Manifest, error) {
	kind, header, body, rest := chunk(data)
	if kind != chunkXML || len(header) < 8 || len(rest) > 0 {
		return Manifest{}, errManifest
	}
	var texts []string
	var ids []uint32
	for len(body) > 0 {
		var content []byte
		kind, header, content, body = chunk(body)
		switch kind {
		case 0:
			return Manifest{}, errManifest
		case chunkStrings:
			texts = stringPool(header, content)
		case chunkResources:
			for ; len(content) >= 4; content = content[4:] {
				ids = append(ids, binary.LittleEndian.Uint32(content))
			}
		case chunkElement:
			return element(content, texts, ids)
		}
	}
	return Manifest{}, errManifest
}

// chunk cuts the first chunk off: its kind, its header, and what is in it. Kind 0: there
// is none, or it is damaged.
func chunk(data []byte) (kind uint16, header, content, rest []byte) {
	if len(data) < 8 {
		return 0, nil, nil, nil
	}
	head, size := uint64(binary.LittleEndian.Uint16(data[2:])), uint64(binary.LittleEndian.Uint32(data[4:]))
	if head < 8 || head > size || size > uint64(len(data)) {
		return 0, nil, nil, nil
	}
	return binary.LittleEndian.Uint16(data), data[:head], data[head:size], data[size:]
}

// stringPool returns the strings; what is damaged is empty. The header is a
// ResStringPool_header: the number of strings at 8, the flags at 16, and at 20 where the
// strings begin, from the start of the chunk. The content begins with each string's offset.
func stringPool(header, content []byte) []string {
	if len(header) < 28 {
		return nil
	}
	count, flags, start := binary.LittleEndian.Uint32(header[8:]), binary.LittleEndian.Uint32(header[16:]),
		binary.LittleEndian.Uint32(header[20:])
	if count > maxStrings || uint64(count)*4 > uint64(len(content)) || uint64(start) < uint64(len(header)) ||
		uint64(start) > uint64(len(header)+len(content)) {
		return nil
	}
	all, pool := make([]string, count), content[int(start)-len(header):]
	for i := range all {
		offset := binary.LittleEndian.Uint32(content[4*i:])
		if uint64(offset) >= uint64(len(pool)) {
			continue
		}
		if flags&utf8Flag != 0 {
			all[i] = text8(pool[offset:])
		} else {
			all[i] = text16(pool[offset:])
		}
	}
	return all
}

// text8 reads a string of UTF-8 behind its two lengths, in characters and in bytes.
func text8(b []byte) string {
	for range 2 {
		if len(b) < 2 {
			return ""
		}
		if b[0]&0x80 != 0 {
			b = b[1:]
		}
		b = b[1:]
	}
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return ""
	}
	return string(b[:end])
}

// text16 reads a string of UTF-16 behind its length in units.
func text16(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n&0x8000 != 0 || 2+2*n > len(b) { // none of the texts that are read is so long
		return ""
	}
	units := make([]uint16, n)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2+2*i:])
	}
	return string(utf16.Decode(units))
}

// element reads the attributes of an element, which must be manifest. The content is a
// ResXMLTree_attrExt: the name at 4, at 8 where the attributes begin, at 10 the size of one,
// and at 12 their number. An attribute is a ResXMLTree_attribute: its name at 4, the type of
// its value at 15, and the value at 16.
func element(content []byte, texts []string, ids []uint32) (m Manifest, err error) {
	text := func(index uint32) string {
		if uint64(index) >= uint64(len(texts)) {
			return ""
		}
		return texts[index]
	}
	if len(content) < 20 || text(binary.LittleEndian.Uint32(content[4:])) != "manifest" {
		return m, errManifest
	}
	start, size, count := binary.LittleEndian.Uint16(content[8:]), binary.LittleEndian.Uint16(content[10:]),
		binary.LittleEndian.Uint16(content[12:])
	if size < 20 || int(start)+int(size)*int(count) > len(content) {
		return m, errManifest
	}
	for i := range int(count) {
		a := content[int(start)+i*int(size):]
		name, kind, value := binary.LittleEndian.Uint32(a[4:]), a[15], binary.LittleEndian.Uint32(a[16:])
		id := uint32(0)
		if uint64(name) < uint64(len(ids)) {
			id = ids[name]
		}
		switch {
		case id == attrCode && (kind == typeDecimal || kind == typeHex):
			m.VersionCode = int64(value)
		case id == attrName && kind == typeString:
			m.VersionName = text(value)
		case id == attrMajor && value != 0:
			return m, errors.New("its versionCodeMajor is not 0")
		case id == 0 && text(name) == "package" && kind == typeString:
			m.Package = text(value)
		}
	}
	if m.Package == "" || m.VersionName == "" || m.VersionCode <= 0 {
		return m, errors.New("its manifest names no package, versionCode or versionName")
	}
	return m, nil
}
