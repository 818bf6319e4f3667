package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/outcome"
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

// policyExists asks whether the vendor holds a policy: false only if it says
// that it does not.
func (p *Platform) policyExists(ctx context.Context, name string) (bool, error) {
	_, err := ask(ctx, p, methodGetPolicy, urgent, p.am.Enterprises.Policies.Get(name).Fields("name"))
	if codeOf(err) == outcome.Missing {
		return false, nil
	}
	return err == nil, err
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
