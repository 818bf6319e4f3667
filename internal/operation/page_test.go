package operation_test

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// TestPage_Places compares what a page says of its place in a list.
func TestPage_Places(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		content            []int
		page               int
		total              int64
		first, last, empty bool
		pages              int64
	}{
		{"of an empty list", nil, 0, 0, true, true, true, 0},
		{"the only one", []int{1, 2}, 0, 2, true, true, false, 1},
		{"the first of two", []int{1, 2}, 0, 3, true, false, false, 2},
		{"the last of two", []int{3}, 1, 3, false, true, false, 2},
		{"behind the last", nil, 2, 3, false, true, true, 2},
	} {
		request := operation.PageRequest{Page: c.page, Size: 2}
		text, err := json.Marshal(operation.Page[int]{Content: c.content, Request: request, Total: c.total})
		if err != nil {
			t.Fatal(err)
		}
		var got operation.PageJSON[int]
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, c.name, expect.Values{"first": {got.First, c.first}, "last": {got.Last, c.last}, "empty": {got.Empty, c.empty},
			"pages": {got.TotalPages, c.pages}, "rows": {got.NumberOfElements, len(c.content)}, "no list": {got.Content == nil, false}})
	}
}

// A result that writes itself is taken as it is written.
func TestEncodeResult(t *testing.T) {
	t.Parallel()
	const text = `{"a": "<"}`
	got, err := operation.EncodeResult(operation.Repeated{JSON: json.RawMessage(text)})
	plain, failed := operation.EncodeResult("a")
	expect.Equal(t, "results", expect.Values{"written by itself": {string(got), text}, "error": {err, error(nil)},
		"text": {string(plain), `"a"`}, "error of text": {failed, error(nil)}})
}
