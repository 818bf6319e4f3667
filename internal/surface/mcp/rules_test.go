package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/surface/mcp"
)

func TestClean_HiddenTextNeverReachesAModel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Lagerhaus 7 – Gerät":               "Lagerhaus 7 – Gerät",
		"a\u200bb\u200d\u2060c\ufeff":       "abc",
		"abc\u202egnp.exe\u202c":            "abcgnp.exe",
		"\u2066x\u2069":                     "x",
		"bell\a\x1b[31mred":                 "bell[31mred",
		"two\nlines\tand\rmore":             "two lines and more",
		"tag\U000E0041\U000E0042\U000E007F": "tag",
		"soft\u00adhyphen":                  "softhyphen",
		"line\u2028sep\u2029":               "linesep",
		"unassigned\U000E0000\U000E0002":    "unassigned", // beside the tag characters, as invisible
		"person\ufdd0\uffff\u2065\ufff5":    "person",
		"vs\ufe0f\U000E0100":                "vs",
		"":                                  "",
	} {
		t.Run(in, func(t *testing.T) {
			if got := mcp.Clean(in); got != want {
				t.Errorf("%q: %q, want %q", in, got, want)
			}
		})
	}
	if got := mcp.Clean(strings.Repeat("ä", 5000)); utf8.RuneCountInString(got) != 1001 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text keeps %d characters", utf8.RuneCountInString(got))
	}
}

func TestClean_KeepsTheShapeOfAResult(t *testing.T) {
	t.Parallel()
	in :=
		`{"a":"x\u200b","a\u200b":{"shadow":1},"n":1.50,"big":12345678901234567890,"b":true,"z":null,"list":["\u202e",{"image":"kept","k\u200b":"v"}],"image":{"data":"AAAA"}}`
	for pictured, want := range map[bool]string{
		false: `{"a":"x","n":1.50,"big":12345678901234567890,"b":true,"z":null,"list":["",{"image":"kept","k":"v"}],"image":{"data":"AAAA"}}`,
		true:  `{"a":"x","n":1.50,"big":12345678901234567890,"b":true,"z":null,"list":["",{"image":"kept","k":"v"}]}`,
	} {
		got, err := mcp.CleanJSON([]byte(in), pictured)
		if err != nil || string(got) != want {
			t.Errorf("pictured %v: %s, %v", pictured, got, err)
		}
	}
}

func TestEnvelope_IsReadStrictly(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe_device","arguments":{"assetId":"a"}}}`: true,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`:                                                           false,
		` [ ]`: false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`:                                           false,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call"}`:                                                                 false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_asset","NAME":"wipe_device"}}`:              false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_asset","name":"wipe_device"}}`:              false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"assetId":"a","assetId":"b"}}}`: false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":{"b":1,"b":2}}}}`:           false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","Arguments":{}}}`:                            false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"} {"jsonrpc":"2.0","id":2,"method":"tools/call"}`:                  false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`:                                                                false,
		`{"id":1,"method":"tools/list"}`:                         false,
		`{"jsonrpc":2.0,"id":1,"method":"tools/list"}`:           false,
		`{"jsonrpc":"2.0","method":"tools/list"}`:                false,
		`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`:      false,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`: true,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                   true,
		`not json`:                                               false,
		``:                                                       false,
		`null`:                                                   false,
		`"2.0"`:                                                  false,
	} {
		t.Run(body, func(t *testing.T) {
			m, err := mcp.ReadMessage([]byte(body))
			if (err == nil) != good {
				t.Errorf("%s: %+v, %v", body, m, err)
			}
		})
	}
	m, err := mcp.ReadMessage([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe_device"}}`))
	if err != nil || m.Method != "tools/call" || m.Tool != "wipe_device" || string(m.ID) != "7" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestBearerToken_IsReadStrictly(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Bearer mat_abc": "mat_abc", "bearer mat_abc": "mat_abc", "BEARER mat_abc==": "mat_abc==",
		"Bearer": "", "Bearer ": "", "Bearer  mat_abc": "", "Bearer mat abc": "", "Bearer mat_abc ": "", " Bearer mat_abc": "",
		"Basic bWF0": "", "Bearer mat_abc, Bearer x": "", "Bearer mät": "", "Bearer a\nb": "", "Bearermat_abc": "",
		"Bearer " + strings.Repeat("a", 257): "", "": "",
	} {
		t.Run(header, func(t *testing.T) {
			if got, ok := mcp.Bearer(header); got != want || ok != (want != "") {
				t.Errorf("%q: %q, %v", header, got, ok)
			}
		})
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer mat_abc")
	f.Add("bearer a==")
	f.Fuzz(func(t *testing.T, header string) {
		token, ok := mcp.Bearer(header)
		if !ok {
			return
		}
		if len(token) == 0 || len(token) > 512 || !strings.EqualFold(header, "Bearer "+token) ||
			strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '"' }) {
			t.Fatalf("%q is read as %q", header, token)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\u202eb\U000E0041")
	f.Add(strings.Repeat("x", 1200))
	f.Fuzz(func(t *testing.T, text string) {
		got := mcp.Clean(text)
		if utf8.RuneCountInString(got) > 1001 || !utf8.ValidString(got) {
			t.Fatalf("%q becomes %q", text, got)
		}
		if again := mcp.Clean(strings.TrimSuffix(got, "…")); again != strings.TrimSuffix(got, "…") {
			t.Fatalf("%q is clean, and becomes %q", got, again)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q keeps the control character %U", text, r)
			}
			if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("%q keeps %U, which changes the direction", text, r)
			}
			if r >= 0x200b && r <= 0x200f || r >= 0xe0000 && r <= 0xe0fff {
				t.Fatalf("%q keeps the invisible %U", text, r)
			}
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := mcp.ReadMessage(body)
		if err != nil || !json.Valid(body) {
			return
		}
		// Whatever passes means the same to a reader that ignores case.
		var loose struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(body, &loose) == nil && (loose.Method != m.Method || loose.Params.Name != m.Tool) {
			t.Fatalf("%q reads as %q %q to others, %q %q to us", body, loose.Method, loose.Params.Name, m.Method, m.Tool)
		}
	})
}
