package platform

import (
	"github.com/musterhq/muster/internal/outcome"

	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/api/googleapi"
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
		return p.patch(ctx, name, body, &answer)
	})
	if err == nil && answer.Name == "" {
		err = &Failure{Method: methodPatchPolicy, Code: outcome.Unknown, Message: "the answer names no policy"}
	}
	return answer.Version, err
}

func (p *Platform) patch(ctx context.Context, name string, body []byte, answer any) error {
	address := googleapi.ResolveRelative(p.am.BasePath, "v1/"+name) + "?alt=json&prettyPrint=false"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", googleapi.UserAgent)
	response, err := p.http.Do(request)
	if err != nil {
		return err
	}
	defer googleapi.CloseBody(response)
	if err := googleapi.CheckResponse(response); err != nil {
		return err
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// policyExists asks whether the vendor holds a policy: false only if it says
// that it does not.
func (p *Platform) policyExists(ctx context.Context, name string) (bool, error) {
	err := p.call(ctx, methodGetPolicy, urgent, func(ctx context.Context) error {
		_, err := p.am.Enterprises.Policies.Get(name).Fields("name").Context(ctx).Do()
		return err
	})
	if codeOf(err) == outcome.Missing {
		return false, nil
	}
	return err == nil, err
}
