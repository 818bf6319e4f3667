package operation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// FuzzMembers looks for a text that reaches an argument although it is not one
// JSON object of declared members, each once, in exact case; or for a fault
// that tells nothing, or tells a value.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{"text":"a"}`, `{"text":"a","assetId":"VICTIM"}`, `{"text":"a","changes":[{"setting":"X","value":"Y"}]}`,
		`{"te\u0078t":"a","text":"b"}`, `{"text":"a"}}`, `{"text":null,"hidden":true,"count":1e0}`, `[]`, ``, "{\"\xff\":1}",
		`{"text":"a","secret":"sesame","apps":["a.b"],"mode":"wpa","email":"a@b.c"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := echo[everything](writing, &operation.Parts{Path: []string{"MINE"}, Body: body})
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if got.AssetID != "MINE" {
			t.Fatalf("the body reached the path argument: %q", got.AssetID)
		}
		strict(t, body, map[string]bool{"text": true, "short": true, "email": true, "apps": true, "mode": true, "exact": true,
			"count": true, "secret": true, "hidden": true, "changes": true, "nested": true})
		for rule, broken := range map[string]bool{"text": got.Text == "", "apps": len(got.Apps) > 3,
			"count": got.Count < 1 || got.Count > 9,
			"mode":  got.Mode != "WEP" && got.Mode != "WPA"} {
			if broken {
				t.Fatalf("%s broke its rule and passed: %+v", rule, got)
			}
		}
	})
}

func checkRefusal(t *testing.T, err *fault.Error) {
	t.Helper()
	if err.Code != fault.InvalidArguments || err.Detail == "" || (!err.Malformed && len(err.Fields) == 0) {
		t.Fatalf("a fault that tells nothing: %+v", err)
	}
	for _, field := range err.Fields {
		if field.Field == "" && !err.Malformed || field.Message == "" || strings.ContainsAny(field.Field+err.Detail, "\x00\n\r\x1b") {
			t.Fatalf("a fault that tells nothing, or too much: %+v", err)
		}
	}
	for _, field := range err.Fields {
		if strings.Contains(field.Message, "sesame") {
			t.Fatalf("a value is revealed: %+v", err)
		}
	}
}

// strict reads the body with another reader and insists that it is one object
// with the names, each once, and none twice below.
func strict(t *testing.T, body []byte, names map[string]bool) {
	t.Helper()
	if !json.Valid(body) || bytes.TrimSpace(body)[0] != '{' {
		t.Fatalf("not one JSON object, yet accepted: %q", body)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	seen := []map[string]bool{}
	isName := []bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		top := len(seen) - 1
		switch token {
		case json.Delim('{'):
			seen, isName = append(seen, map[string]bool{}), append(isName, true)
			continue
		case json.Delim('['):
			seen, isName = append(seen, nil), append(isName, false)
			continue
		case json.Delim('}'), json.Delim(']'):
			seen, isName = seen[:top], isName[:top]
			top--
		default:
			if seen[top] != nil && isName[top] {
				name := token.(string)
				if seen[top][name] || top == 0 && !names[name] {
					t.Fatalf("%q is unknown or stands twice, yet accepted: %q", name, body)
				}
				seen[top][name] = true
				isName[top] = false
				continue
			}
		}
		if top >= 0 && seen[top] != nil {
			isName[top] = true
		}
	}
}

// FuzzQuery looks for a query that passes although it breaks a rule.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "page=1&size=20", "status=ACTIVE", "page=1&page=2", "flag=true", "%zz", "a;b",
		"size=101", "sort=%ff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := echo[listing](operation.Operation{Name: "list", Method: "GET", Path: "/assets", Needs: 1},
			&operation.Parts{Query: query})
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if got.Page < 0 || got.Size < 1 || got.Size > 100 {
			t.Fatalf("%q passed with page %d of size %d", query, got.Page, got.Size)
		}
		if got.Status != "" && got.Status != "ACTIVE" && got.Status != "INACTIVE" {
			t.Fatalf("%q passed with status %q", query, got.Status)
		}
	})
}
