package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// patchPolicy replaces the vendor's copy of a policy, or makes it, and returns
// the vendor's version of it. There is no updateMask: the vendor then replaces
// all that can be changed. The vendor's client is bypassed for the body alone,
// because its types drop explicit false values.
func (p *Platform) patchPolicy(ctx context.Context, name string, body []byte, r rank) (int64, error) {
	var answer struct {
		Name    string `json:"name"`
		Version int64  `json:"version,string"`
	}
	err := p.call(ctx, methodPatchPolicy, r, func(ctx context.Context) error {
		text, err := p.exchange(ctx, http.MethodPatch, name, body)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		return nil
	})
	if err == nil && answer.Name == "" {
		err = &Failure{Method: methodPatchPolicy, Code: outcome.Unknown, Message: "the answer names no policy"}
	}
	return answer.Version, err
}

// exchange sends the text of a policy, or none, and returns the vendor's as it
// is: its client's types would drop members that they do not know.
func (p *Platform) exchange(ctx context.Context, method, name string, body []byte) ([]byte, error) {
	address := googleapi.ResolveRelative(p.am.BasePath, "v1/"+name) + "?alt=json&prettyPrint=false"
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", googleapi.UserAgent)
	response, err := p.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer googleapi.CloseBody(response)
	if err := googleapi.CheckResponse(response); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxCopy+1))
	if err == nil && len(text) > maxCopy {
		err = fmt.Errorf("the answer is longer than %d bytes", maxCopy)
	}
	return text, err
}

// outgoing is a policy's document as it is sent: whole, explicit false values
// included, without the two members that only the vendor writes.
func outgoing(document json.RawMessage) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, fmt.Errorf("the policy's document is not a JSON object: %w", err)
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	delete(members, "name")
	delete(members, "version")
	return json.Marshal(members)
}

// The vendor's policy id is our short id, so that either side's name follows
// from the other's.

// policyName is the vendor's name of a policy of ours.
func policyName(enterprise, id string) string { return enterprise + "/policies/" + id }

// policyID is our id of the vendor's policy; empty if it is none of ours. The
// vendor may name a policy in full or by its id alone.
func policyID(enterprise, vendorName string) string {
	id := strings.TrimPrefix(vendorName, enterprise+"/policies/")
	if !resource.IsID(id) {
		return ""
	}
	return id
}

// enterpriseOf is the enterprise that a name of the vendor lies in: its first
// two segments.
func enterpriseOf(vendorName string) string {
	parts := strings.SplitN(vendorName, "/", 3)
	if len(parts) < 2 || parts[0] != "enterprises" || parts[1] == "" {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// maxName bounds a name of the vendor, in bytes.
const maxName = 512

// isName reports whether a name can be stored: no database takes every byte.
func isName(vendorName string) bool {
	return len(vendorName) <= maxName && utf8.ValidString(vendorName) &&
		!strings.ContainsFunc(vendorName, func(r rune) bool { return !unicode.IsPrint(r) })
}

// isDevice reports whether a name is a device's.
func isDevice(vendorName string) bool {
	if !isName(vendorName) {
		return false
	}
	parts := strings.Split(vendorName, "/")
	return len(parts) == 4 && parts[0] == "enterprises" && parts[1] != "" && parts[2] == "devices" && parts[3] != ""
}

// instant reads the vendor's time; zero if it is none.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
