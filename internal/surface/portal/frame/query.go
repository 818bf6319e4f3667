package frame

import (
	"errors"
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

// Choice is a parameter of the address that is one of some values; empty: it is not given. A page that
// left another value out would say that it shows what was asked for.
func (v *Visit) Choice(name string, values ...string) (string, error) {
	value := v.Query().Get(name)
	if value != "" && !slices.Contains(values, value) {
		return "", WrongQuery("“" + name + "” in the address is none of the choices of this page")
	}
	return value, nil
}

// Number is a parameter of the address that is a whole number of at least 0, such as a time in
// milliseconds; 0: it is not given. Others are refused, as with Choice.
func (v *Visit) Number(name string) (int64, error) {
	text := v.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, WrongQuery("“" + name + "” in the address is no number of this page")
	}
	return n, nil
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
