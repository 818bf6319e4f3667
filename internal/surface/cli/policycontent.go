package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"

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
	switch c.Document {
	case "":
		return nil, nil
	case "-":
		return limited(env.In, "standard input")
	}
	file, err := os.Open(c.Document)
	if err != nil {
		return nil, fault.Invalid("cannot open the document: " + err.Error())
	}
	defer file.Close() //nolint:errcheck // it was only read
	return limited(file, c.Document)
}

func limited(from io.Reader, what string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, policy.MaxDocumentBytes+1))
	if err != nil {
		return nil, fault.Invalid("cannot read " + what + ": " + err.Error())
	}
	if len(text) > policy.MaxDocumentBytes {
		return nil, fault.Invalid(fmt.Sprintf("%s is larger than the %d bytes that a document may have", what, policy.MaxDocumentBytes))
	}
	return bytes.TrimSpace(text), nil
}

// deref is the text, or none.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
