package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format of Debian
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the format of Red Hat
)

// packages writes the packages of one architecture of Linux.
func (r release) packages(arch string) error {
	staged, err := os.MkdirTemp("", "muster-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	contents, err := r.installed(arch, staged)
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		script := func(name string) string { return filepath.Join(r.root, "packaging", name+".sh") }
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "muster", Arch: arch, Platform: "linux", Version: r.packageVersion(), VersionSchema: "none", Release: "1", MTime: r.time,
			Section: "admin", Priority: "optional", License: "Apache-2.0",
			Maintainer: "The Muster developers <muster@localhost>",
			Description: "Self-hosted management of Android devices\nMuster keeps an inventory of a company's Android devices, sends " +
				"commands to\nthem, changes their policies after a review, and enrolls them by QR code.",
			Overridables: nfpm.Overridables{
				Contents: contents, Recommends: []string{"ca-certificates"},
				Scripts: nfpm.Scripts{PostInstall: script("postinst"), PreRemove: script("prerm"), PostRemove: script("postrm")},
				RPM:     nfpm.RPM{BuildHost: "localhost", Compression: "gzip"},
			},
		})
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		if err := packager.Package(info, &packed); err != nil {
			return fmt.Errorf("%s package for %s: %w", format, arch, err)
		}
		if err := r.write(packager.ConventionalFileName(info), packed.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// installed lists what the packages install. Compressed pages are put into staged.
func (r release) installed(arch, staged string) (files.Contents, error) {
	var all files.Contents
	add := func(from, to, kind string, mode fs.FileMode) {
		all = append(all, &files.Content{Source: from, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.time}})
	}
	packaging := func(name string) string { return filepath.Join(r.root, "packaging", name) }
	add(filepath.Join(r.build, "linux-"+arch, "muster"), "/usr/bin/muster", "", 0o755)
	add(packaging("muster-admin"), "/usr/sbin/muster-admin", "", 0o755)
	add(packaging("muster.service"), "/usr/lib/systemd/system/muster.service", "", 0o644)
	add("", "/etc/muster", "dir", 0o755)
	add("", "/etc/muster/credentials", "dir", 0o700)
	add(packaging("muster.env"), "/etc/muster/muster.env", "config|noreplace", 0o600)
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		add(filepath.Join(r.root, name), "/usr/share/doc/muster/"+name, "", 0o644)
	}
	add(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/muster/copyright", "", 0o644)
	for from, to := range map[string]string{"muster.bash": "bash-completion/completions/muster",
		"_muster": "zsh/vendor-completions/_muster", "muster.fish": "fish/vendor_completions.d/muster.fish"} {
		add(filepath.Join(r.build, "man", from), "/usr/share/"+to, "", 0o644)
	}
	agents, err := filepath.Glob(filepath.Join(r.build, "devices", "*"))
	if err != nil {
		return nil, err
	}
	for _, agent := range agents {
		add(agent, "/usr/share/muster/devices/"+filepath.Base(agent), "", 0o644)
	}
	pages, err := filepath.Glob(filepath.Join(r.build, "man", "*.1"))
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s has no pages of the manual", strings.TrimSuffix(r.build, "/"))
	}
	for _, page := range append(pages, packaging("muster-admin.8")) {
		small := filepath.Join(staged, filepath.Base(page)+".gz")
		if err := compress(page, small); err != nil {
			return nil, err
		}
		add(small, "/usr/share/man/man"+strings.TrimPrefix(filepath.Ext(page), ".")+"/"+filepath.Base(small), "", 0o644)
	}
	return all, nil
}

// compress writes a file as gzip without name and time, as Debian wants it.
func compress(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(content); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, small.Bytes(), 0o644)
}
