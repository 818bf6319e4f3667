package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file, or a directory if its name ends in a slash.
type entry struct {
	name    string // slash-separated
	content []byte
	mode    fs.FileMode
	owner   int // user and group
}

// archive writes the archive of one target: its program, the agents for devices, the
// manual and what the packages install beside it.
func (r release) archive(target, program string) error {
	name := "muster-" + r.version + "-" + target
	var all []entry
	add := func(as string, mode fs.FileMode, from ...string) error {
		content, err := os.ReadFile(filepath.Join(from...))
		all = append(all, entry{name: name + "/" + as, content: content, mode: mode})
		return err
	}
	if err := add(program, 0o755, r.build, target, program); err != nil {
		return err
	}
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if err := add(file, 0o644, r.root, file); err != nil {
			return err
		}
	}
	for _, folder := range []struct {
		from, as string
		mode     fs.FileMode
	}{{filepath.Join(r.build, "devices"), "devices", 0o755}, {filepath.Join(r.build, "man"), "man", 0o644},
		{filepath.Join(r.root, "packaging"), "packaging", 0o644}} {
		files, err := os.ReadDir(folder.from)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := add(folder.as+"/"+file.Name(), folder.mode, folder.from, file.Name()); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(target, "windows-") {
		return r.zip(name, all)
	}
	packed, err := r.gzip(all)
	if err != nil {
		return err
	}
	return r.write(name+".tar.gz", packed)
}

// tar is a tape archive of the entries in the order of their names.
func (r release) tar(all []entry) ([]byte, error) {
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, e := range all {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: tarMode(e.mode), ModTime: r.time,
			Uid: e.owner, Gid: e.owner, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return packed.Bytes(), err
}

func tarMode(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}

func (r release) gzip(all []entry) ([]byte, error) {
	packed, err := r.tar(all)
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(packed); err != nil {
		return nil, err
	}
	err = writer.Close()
	return small.Bytes(), err
}

func (r release) zip(name string, all []entry) error {
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	for _, e := range all {
		header := &zip.FileHeader{Name: path.Clean(e.name), Method: zip.Deflate, Modified: r.time}
		header.SetMode(e.mode)
		file, err := writer.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return r.write(name+".zip", packed.Bytes())
}

func (r release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}
