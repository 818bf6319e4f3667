package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user and group that the image runs as.
const imageUser = 1000

// image writes the OCI archive of one image, muster:VERSION, for each architecture. podman load takes an archive of one only.
func (r release) image(architectures []string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		image, err := r.imageOf(arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch},
		}})
	}
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": "muster:" + plain(r.version)}}})
	folder, err := os.MkdirTemp("", "muster-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := layout.Write(folder, named); err != nil {
		return err
	}
	var all []entry
	err = filepath.WalkDir(folder, func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, entry{name: filepath.ToSlash(name), content: content, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := r.tar(all)
	if err != nil {
		return err
	}
	return r.write("muster-"+r.version+"-image.tar", packed)
}

// imageOf is one image: the program, certificate authorities and a user.
func (r release) imageOf(arch string) (v1.Image, error) {
	program, err := os.ReadFile(filepath.Join(r.build, "linux-"+arch, "muster"))
	if err != nil {
		return nil, err
	}
	packed, err := r.tar([]entry{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", content: authorities(), mode: 0o644},
		{name: "etc/passwd", content: []byte("muster:x:1000:1000::/var/lib/muster:/sbin/nologin\n"), mode: 0o644},
		{name: "etc/group", content: []byte("muster:x:1000:\n"), mode: 0o644},
		{name: "tmp/", mode: 0o777 | fs.ModeSticky},
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/bin/muster", content: program, mode: 0o755},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755}, {name: "var/lib/muster/", mode: 0o700, owner: imageUser},
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.configuration(image, arch))
}

func (r release) configuration(image v1.Image, arch string) *v1.ConfigFile {
	made, err := image.ConfigFile()
	if err != nil { // it was made in memory
		made = &v1.ConfigFile{}
	}
	made = made.DeepCopy()
	made.OS, made.Architecture, made.Created = "linux", arch, v1.Time{Time: r.time}
	for i := range made.History {
		made.History[i].Created = v1.Time{Time: r.time}
	}
	made.Config = v1.Config{
		User: "1000:1000", WorkingDir: "/var/lib/muster", Entrypoint: []string{"/usr/bin/muster"}, Cmd: []string{"serve"},
		Env: []string{"PATH=/usr/bin", "MUSTER_LISTEN=0.0.0.0:8080"}, ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes: map[string]struct{}{"/var/lib/muster": {}}, StopSignal: "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "muster", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return made
}

// authorities are Mozilla's, as the pinned module has them. Those that are trusted only in
// part are left out, because a file cannot say that.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // memory takes it
		}
	}
	return all.Bytes()
}
