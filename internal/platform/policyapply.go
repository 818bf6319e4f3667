package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"strings"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

var _ proposal.Publisher = (*Platform)(nil)

// PushUnsaved implements proposal.Publisher: one attempt to make the platform's
// copy of a policy candidate.Document, under the lease that the caller has.
// Nothing is noted here; the caller saves what came of it.
func (p *Platform) PushUnsaved(ctx context.Context, c company.Company, candidate policy.Policy) (policy.PushResult, int64) {
	body, err := outgoing(candidate.Document)
	if err != nil {
		return policy.PushResult{Code: outcome.Refused, Detail: err.Error(), Cause: err}, 0
	}
	version, err := p.patchPolicy(ctx, policyName(c.Enterprise, candidate.ID), body, urgent)
	if err != nil {
		return pushResult(err), 0
	}
	return policy.PushResult{Code: outcome.Done}, version
}

// maxCopy bounds what is read of the platform's copy of a policy.
const maxCopy = 8 << 20

// ReadCopy implements proposal.Publisher. The vendor leaves out what has its
// protocol's default, so defaults do not count in the comparison.
func (p *Platform) ReadCopy(ctx context.Context, c company.Company, of policy.Policy) (policy.Copy, error) {
	var text []byte
	err := p.call(ctx, methodGetPolicy, upkeep, func(ctx context.Context) (err error) {
		text, err = p.exchange(ctx, http.MethodGet, policyName(c.Enterprise, of.ID), nil)
		return err
	})
	if codeOf(err) == outcome.Missing {
		return policy.Copy{}, nil
	}
	if err != nil {
		return policy.Copy{}, err
	}
	var answer struct {
		Version int64 `json:"version,string"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return policy.Copy{}, fmt.Errorf("platform: %s: the answer cannot be read: %w", methodGetPolicy, err)
	}
	same, err := sameMeaning(text, of.Document)
	return policy.Copy{Same: same, Version: answer.Version}, err
}

// sameMeaning compares the vendor's copy of a policy with a document of ours.
func sameMeaning(theirs, ours []byte) (bool, error) {
	schemas, err := discovery.Load()
	if err != nil {
		return false, err
	}
	var meanings [2]map[string]any
	for i, text := range [2][]byte{theirs, ours} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&meanings[i]); err != nil {
			return false, fmt.Errorf("platform: a policy's document cannot be read: %w", err)
		}
		delete(meanings[i], "name")
		delete(meanings[i], "version")
		schemas.Prune("Policy", meanings[i])
		bare(meanings[i])
	}
	return reflect.DeepEqual(meanings[0], meanings[1]), nil
}

// bare drops messages without members, and writes numbers in one way.
func bare(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			inner = bare(inner)
			value[name] = inner
			if m, ok := inner.(map[string]any); ok && len(m) == 0 {
				delete(value, name)
			}
		}
	case []any:
		for i := range value {
			value[i] = bare(value[i])
		}
	case json.Number: // exponents are left as they are: they could be written out without end
		if strings.ContainsAny(value.String(), "eE") {
			return value
		}
		if n, ok := new(big.Rat).SetString(value.String()); ok {
			return json.Number(n.RatString())
		}
	}
	return value
}
