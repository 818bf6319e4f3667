package emulator

import (
	"encoding/base64"
	"sort"
	"strconv"
	"strings"
)

// page cuts a page out of items, which are sorted by their keys. The token says
// after which key the next page begins, so that items which come and go between
// two pages are neither repeated nor skipped. A token is good for the same list
// alone. Sizes above the most are cut.
func page[T any](c *call, items []T, key func(T) string, usual, most int) ([]T, string, error) {
	size := usual
	if text := c.query.Get("pageSize"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, "", invalid("Page size must not be negative.")
		}
		if n > 0 {
			size = min(n, most)
		}
	}
	start, prefix := 0, c.method.ID+" "+c.name()+" after:"
	if token := c.query.Get("pageToken"); token != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(token)
		after, ok := strings.CutPrefix(string(decoded), prefix)
		if err != nil || !ok {
			return nil, "", invalid("Invalid page token.")
		}
		start = sort.Search(len(items), func(i int) bool { return key(items[i]) > after })
	}
	end := min(start+size, len(items))
	next := ""
	if end < len(items) {
		next = base64.RawURLEncoding.EncodeToString([]byte(prefix + key(items[end-1])))
	}
	return items[start:end], next, nil
}
