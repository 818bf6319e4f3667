package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack puts the content of the image for this machine into root, with owners and modes,
// and returns its configuration.
func (p proof) unpack(root string) (v1.Config, error) {
	archive, err := os.Open(p.image)
	if err != nil {
		return v1.Config{}, err
	}
	defer archive.Close()
	folder := root + ".oci"
	if err := extract(archive, folder); err != nil {
		return v1.Config{}, err
	}
	archived, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return v1.Config{}, err
	}
	named, err := archived.IndexManifest()
	if err != nil {
		return v1.Config{}, err
	}
	index, err := archived.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		return v1.Config{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return v1.Config{}, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform == nil || m.Platform.Architecture != runtime.GOARCH {
			continue
		}
		image, err := index.Image(m.Digest)
		if err != nil {
			return v1.Config{}, err
		}
		configuration, err := image.ConfigFile()
		if err != nil {
			return v1.Config{}, err
		}
		content := mutate.Extract(image)
		defer content.Close()
		return configuration.Config, extract(content, root)
	}
	return v1.Config{}, fmt.Errorf("%s has no image for %s", p.image, runtime.GOARCH)
}

// extract writes the files of a tape archive below root.
func extract(packed io.Reader, root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	reader := tar.NewReader(packed)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the archive has a file %q", header.Name)
		}
		path := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = write(path, reader)
		}
		// The mode at the end: a change of the owner takes bits away.
		if err := errors.Join(err, os.Lchown(path, header.Uid, header.Gid), os.Chmod(path, header.FileInfo().Mode())); err != nil {
			return err
		}
	}
}

func write(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// owner reads the user and group of an image, which are numbers.
func owner(user string) (uid, gid int, err error) {
	first, second, _ := strings.Cut(user, ":")
	uid, err = strconv.Atoi(first)
	if err != nil {
		return 0, 0, fmt.Errorf("the image's user %q is not a number", user)
	}
	gid, err = strconv.Atoi(second)
	return uid, gid, err
}
