package rollout

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"

	"github.com/musterhq/muster/internal/agent/release"
	"github.com/musterhq/muster/internal/apk"
	"github.com/musterhq/muster/internal/fault"
)

// versionForm is that of a version's name.
var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`)

// Read finds out what a file is a release of, and who signed it: a signed program of the
// Go agent, or an Android app.
func Read(content []byte) (Release, error) {
	if len(content) > MaxSize {
		return Release{}, fault.New(fault.InvalidArguments, "the file is larger than %d bytes", MaxSize)
	}
	sum := sha256.Sum256(content)
	r := Release{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	var err error
	if bytes.HasPrefix(content, []byte("PK")) {
		err = r.app(content)
	} else {
		err = r.program(content)
	}
	if err == nil && !versionForm.MatchString(r.Version) {
		err = fault.New(fault.InvalidArguments, "the file names its version %q: use letters, digits and . + _ -, at most 64", r.Version)
	}
	return r, err
}

func (r *Release) app(content []byte) error {
	signed, err := apk.Parse(content)
	if err != nil {
		return fault.New(fault.InvalidArguments, "the file is not a signed Android app").Because(err)
	}
	stated, err := apk.ReadManifest(content)
	if err != nil {
		return fault.New(fault.InvalidArguments, "the file is not an Android app").Because(err)
	}
	r.Package, r.Version, r.Code, r.Signer = stated.Package, stated.VersionName, stated.VersionCode, signed.Checksum
	return nil
}

func (r *Release) program(content []byte) error {
	stated, key, err := release.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return fault.New(fault.InvalidArguments, "the file is neither an Android app nor a signed program of the Go agent").Because(err)
	}
	digest := sha256.Sum256(key)
	r.Package, r.Version, r.Code, r.Signer = stated.Package, stated.Version, stated.Code, base64.RawURLEncoding.EncodeToString(digest[:])
	return nil
}
