package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// components writes the list of what is in the program, as the linker recorded it.
func (r release) components(arch string) error {
	info, err := buildinfo.ReadFile(filepath.Join(r.build, "linux-"+arch, "muster"))
	if err != nil {
		return err
	}
	product := "pkg:golang/" + info.Main.Path + "@" + r.version
	list := []cyclonedx.Component{{BOMRef: "go", Type: cyclonedx.ComponentTypeLibrary, Name: "std",
		Version:    strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, module := range info.Deps {
		url := "pkg:golang/" + module.Path + "@" + module.Version
		list = append(list, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path,
			Version: module.Version, PackageURL: url})
	}
	refs := make([]string, len(list))
	for i, component := range list {
		refs[i] = component.BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &cyclonedx.Component{
		BOMRef: product, Type: cyclonedx.ComponentTypeApplication, Name: "muster", Version: r.version, PackageURL: product,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}}
	bom.Components = &list
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: product, Dependencies: &refs}}
	sum := sha256.Sum256([]byte(r.version + strings.Join(refs, "\n")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write("muster-"+r.version+"-sbom.cdx.json", text.Bytes())
}

// checksums writes SHA256SUMS of all files, and signs it if there is a key.
func (r release) checksums(key, password string) error {
	found, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, file := range found {
		if file.IsDir() || strings.HasPrefix(file.Name(), "SHA256SUMS") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, file.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), file.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	sums := []byte(strings.Join(lines, ""))
	if err := r.write("SHA256SUMS", sums); err != nil {
		return err
	}
	fmt.Print(string(sums))
	if key == "" {
		fmt.Fprintln(os.Stderr, "UNSIGNED: set MUSTER_RELEASE_KEY to the minisign key that signs SHA256SUMS")
		return nil
	}
	return r.sign(key, password, sums)
}

func (r release) sign(key, password string, sums []byte) error {
	private, err := readKey(key, password)
	if err != nil {
		return fmt.Errorf("cannot read the key %s (its password is MUSTER_RELEASE_PASSWORD): %w", key, err)
	}
	reader := minisign.NewReader(bytes.NewReader(sums))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return err
	}
	return r.write("SHA256SUMS.minisig", reader.SignWithComments(private, "muster "+r.version, "signature of muster "+r.version))
}

// readKey reads a key of minisign. One without a password, of minisign -W, is not encrypted.
func readKey(path, password string) (key minisign.PrivateKey, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return key, err
	}
	if minisign.IsEncrypted(text) {
		return minisign.DecryptKey(password, text)
	}
	return key, key.UnmarshalText(text)
}
