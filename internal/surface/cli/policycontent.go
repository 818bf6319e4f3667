package cli

import (
	"bytes"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// PolicyContent is what a policy is beside its settings.
type PolicyContent struct {
	Document    string   `name:"document" placeholder:"FILE" help:"The whole document as JSON, in the platform's own form for PLATFORM policies: apps, restrictions and all; settings are applied on top. - reads standard input."`
	Description *string  `name:"description" help:"What the policy is for."`
	Label       []string `name:"label" sep:"none" help:"A label; repeat for more."`
	Group       *string  `name:"group" help:"The group of policies that it belongs to."`
}

// document reads the document that was given; nil if none was.
func (c PolicyContent) document(env *Env) ([]byte, error) {
	if c.Document == "" {
		return nil, nil
	}
	file, err := env.Input(c.Document)
	if err != nil {
		return nil, fault.Invalid("cannot open the document: " + err.Error())
	}
	defer file.Close() //nolint:errcheck // it was only read
	what := c.Document
	if what == "-" {
		what = "standard input"
	}
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxDocumentBytes+1))
	if err != nil {
		return nil, fault.Invalid("cannot read " + what + ": " + err.Error())
	}
	if len(text) > policy.MaxDocumentBytes {
		return nil, fault.Invalid(fmt.Sprintf("%s is larger than the %d bytes that a document may have", what, policy.MaxDocumentBytes))
	}
	return bytes.TrimSpace(text), nil
}

// deref is a flag's value, or the zero value of one that was not given.
func deref[T any](flag *T) (value T) {
	if flag != nil {
		value = *flag
	}
	return value
}
