package database_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/database"
)

// FuzzFlat compares with encoding/json, of whose output the store is made.
func FuzzFlat(f *testing.F) {
	for _, seed := range []string{``, `{}`, `[]`, `{"a":"b"}`, `{"a":"b","c":"\""}`, `["a","b\\"]`, `["ö"]`, `{"a":"b",}`, `["a",]`, `[,]`,
		`{"a":1}`, `{"a"}`, `{"a":"b":"c"}`, `{"a","b"}`, `["a":"b"]`, `[`, `{`, `{"`, `["a""b"]`, `{"a":"1","a":"2"}`, ` []`, `[ "a"]`,
		"[\"a\n\"]", `null`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("never written: encoding/json writes UTF-8 only")
		}
		var m, wantMap map[string]string
		var l, wantList []string
		m, mapErr := database.DecodeMap(text)
		l, listErr := database.DecodeList(text)
		if err := json.Unmarshal([]byte(text), &wantMap); text != "" && err == nil && (mapErr != nil || !reflect.DeepEqual(m, wantMap)) {
			t.Errorf("%q: map %v, %v, want %v", text, m, mapErr, wantMap)
		}
		if err := json.Unmarshal([]byte(text), &wantList); text != "" && err == nil && (listErr != nil || !reflect.DeepEqual(l, wantList)) {
			t.Errorf("%q: list %v, %v, want %v", text, l, listErr, wantList)
		}
		// What this package writes reads back whole.
		again, err := database.DecodeMap(database.EncodeMap(map[string]string{text: text}))
		if err != nil || again[text] != text {
			t.Errorf("%q does not read back: %v, %v", text, again, err)
		}
	})
}
