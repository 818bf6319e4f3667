package rest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/operation"
)

// sampleResult is an example of an operation's result: of a success, or with 1
// of an outcome that is not known.
func sampleResult(o *operation.Operation, which int) json.RawMessage {
	if which < len(o.Samples) {
		text, err := json.Marshal(o.Samples[which])
		if err != nil {
			panic("the sample of " + o.Name + " cannot be written: " + err.Error())
		}
		return text
	}
	var b bytes.Buffer
	writeSample(&b, o.ResultSchema(nil), "", []string{"", "UNCONFIRMED"}[which])
	return b.Bytes()
}

// writeSample writes a plausible value of a schema. seed, if not empty, is the
// value of a member status.
func writeSample(b *bytes.Buffer, s *jsonschema.Schema, name, seed string) {
	kind := s.Type
	if kind == "" && len(s.Types) > 0 {
		kind = s.Types[0] // null comes last
	}
	switch {
	case len(s.Examples) > 0:
		writeValue(b, s.Examples[0])
	case name == "status" && seed != "":
		writeValue(b, seed)
	case len(s.Enum) > 0:
		writeValue(b, s.Enum[0])
	case kind == "object":
		writeObject(b, s, seed)
	case kind == "array":
		b.WriteByte('[')
		writeSample(b, s.Items, strings.TrimSuffix(name, "s"), seed)
		b.WriteByte(']')
	case kind == "string":
		writeValue(b, sampleText(name, s.Format))
	case kind == "integer":
		writeValue(b, 1)
	case kind == "number":
		writeValue(b, 1.5)
	case kind == "boolean":
		writeValue(b, false)
	default:
		b.WriteString("{}")
	}
}

func writeObject(b *bytes.Buffer, s *jsonschema.Schema, seed string) {
	b.WriteByte('{')
	first := true
	for _, name := range s.PropertyOrder {
		// Optional members belong to special cases: detail to UNCONFIRMED alone,
		// which has no createdAt.
		if !slices.Contains(s.Required, name) && (name == "detail") != (seed != "") {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeValue(b, name)
		b.WriteByte(':')
		writeSample(b, s.Properties[name], name, seed)
	}
	b.WriteByte('}')
}

func sampleText(name, format string) string {
	switch {
	case format == "date-time":
		return "2026-11-21T09:30:00Z"
	case name == "assetId" || name == "pathName":
		return "enterprises/acme/assets/8k2v0r6m4q1x7t9c3w5y2n8b6d"
	case name == "policyId":
		return "enterprises/acme/policies/5h9j3f7p1s6z4g8a2e0k7m9q3v"
	case name == "proposalId":
		return "prp_7q2m9x4c6v1b8n3z5k0w4t6r2y"
	case strings.HasSuffix(name, "Url"):
		return "https://muster.example/policies/5h9j3f7p1s6z4g8a2e0k7m9q3v"
	case name == "detail":
		return "It may have been sent. Do not send it again; look at the command history."
	default:
		return "example"
	}
}

func writeValue(b *bytes.Buffer, v any) {
	text, _ := json.Marshal(v) // text, numbers and booleans: it cannot fail
	b.Write(text)
}
