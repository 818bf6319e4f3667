package frame

import (
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// errQuery marks what is wrong with the query of a page that can be shown without it.
var errQuery = errors.New("wrong query")

// WrongQuery is a fault.InvalidArguments about the query of the address. Its page leads to the one
// without a query.
func WrongQuery(text string) error { return fault.Invalid(text).Because(errQuery) }

// readQuery checks the parameters of a route's Query, and reads their Numbers.
func (v *Visit) readQuery(parameters map[string][]string) error {
	if _, err := url.ParseQuery(v.r.URL.RawQuery); err != nil { // Query would leave out what is malformed
		return fault.Invalid("the address is malformed: open the page again").Because(err)
	}
	v.Numbers = map[string]int64{}
	for name, choices := range parameters {
		text := v.Query().Get(name)
		number, err := strconv.ParseInt(text, 10, 64)
		switch {
		case text == "" || slices.Contains(choices, text):
		case choices != nil:
			return WrongQuery("“" + name + "” in the address is none of the choices of this page")
		case err != nil || number < 0:
			return WrongQuery("“" + name + "” in the address is no number of this page")
		default:
			v.Numbers[name] = number
		}
	}
	return nil
}

// Paged reads a page of a table, or the last one where there is no such page any more.
func Paged[T any](l *List, read func(operation.PageRequest) ([]T, int64, error)) ([]T, int64, error) {
	rows, total, err := read(operation.PageRequest{Page: l.Page, Size: l.Size})
	if err == nil && len(rows) == 0 && total > 0 {
		l.Page = int((total - 1) / int64(l.Size))
		return read(operation.PageRequest{Page: l.Page, Size: l.Size})
	}
	return rows, total, err
}
