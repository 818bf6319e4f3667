package frame

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ListSpec says what the address of a table may bear.
type ListSpec struct {
	Path    string
	Filters []string // names of query parameters
	Kept    []string // parameters that are no filters, such as chosen columns
	Sorts   []string // fields that the table can be sorted by
	Default string   // such as "lastSeen,desc"
}

// List is the state of a table, as its address bears it. An order, page or size that there is
// not is left out: a link that is a little old still opens. A filter that there is not stays:
// without it the table would hold more than was asked for.
type List struct {
	Spec       ListSpec
	Values     url.Values // of the filters, of other parameters kept, and of those that there are not
	Sort       string
	Descending bool
	Page, Size int // Page from 0
}

// Sizes are the page sizes on offer.
func Sizes() []int { return []int{25, 50, 100} }

// maxPage and maxValues bound what an address may ask for. No filter takes so many values or
// bytes.
const (
	maxPage       = 1_000_000
	maxValues     = 50
	maxValueBytes = 1000
)

// ParseList reads the state of a table from the query.
func ParseList(spec ListSpec, query url.Values) List {
	l := List{Spec: spec, Values: url.Values{}, Size: Sizes()[0]}
	for f, values := range query {
		if slices.Contains(shaping(), f) {
			continue
		}
		for _, value := range values[:min(len(values), maxValues)] {
			if value = strings.TrimSpace(value); value != "" || !spec.has(f) {
				l.Values.Add(f, strings.ToValidUTF8(value[:min(len(value), maxValueBytes)], ""))
			}
		}
	}
	field, direction, _ := strings.Cut(query.Get("sort"), ",")
	if !slices.Contains(spec.Sorts, field) {
		field, direction, _ = strings.Cut(spec.Default, ",")
	}
	l.Sort, l.Descending = field, direction == "desc"
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 0 && n <= maxPage {
		l.Page = n
	}
	if n, err := strconv.Atoi(query.Get("size")); err == nil && slices.Contains(Sizes(), n) {
		l.Size = n
	}
	return l
}

// shaping are the parameters of every table that are neither filters nor kept.
func shaping() []string { return []string{"sort", "page", "size"} }

// has reports whether a parameter is a filter, or one that is kept.
func (s ListSpec) has(name string) bool {
	return slices.Contains(s.Filters, name) || slices.Contains(s.Kept, name)
}

// Unknown are the parameters of the address that the table does not have, in their order.
func (l List) Unknown() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.Values)), l.Spec.has)
}

// Get is a filter's first value.
func (l List) Get(filter string) string { return l.Values.Get(filter) }

// Filtered is how many filters there are, also such as the table does not have.
func (l List) Filtered() int {
	n := 0
	for f, values := range l.Values {
		if !slices.Contains(l.Spec.Kept, f) {
			n += len(values)
		}
	}
	return n
}

// Query is the query of the address.
func (l List) Query() url.Values {
	q := maps.Clone(l.Values)
	if by := l.SortText(); by != l.Spec.Default {
		q.Set("sort", by)
	}
	if l.Page > 0 {
		q.Set("page", strconv.Itoa(l.Page))
	}
	if l.Size != Sizes()[0] {
		q.Set("size", strconv.Itoa(l.Size))
	}
	return q
}

// URL is the address of the table as it is.
func (l List) URL() string {
	query := l.Query().Encode()
	return l.Spec.Path + Either(query == "", "", "?") + query
}

// WithQuery is the address with an encoded query added to its own.
func WithQuery(address, query string) string {
	return address + Either(strings.Contains(address, "?"), "&", "?") + query
}

// QueryText is the query of the first page's address, for an export of the same list.
func (l List) QueryText() string { return l.At(0).Query().Encode() }

// SortText is the sort parameter.
func (l List) SortText() string { return l.Sort + Either(l.Descending, ",desc", ",asc") }

// With returns the first page of the table with one filter set; an empty value
// takes it away.
func (l List) With(filter, value string) List {
	l.Values = maps.Clone(l.Values)
	l.Page = 0
	if value == "" {
		l.Values.Del(filter)
	} else {
		l.Values.Set(filter, value)
	}
	return l
}

// Without returns the first page of the table without one value of a filter.
func (l List) Without(filter, value string) List {
	l.Values = maps.Clone(l.Values)
	l.Values[filter] = slices.DeleteFunc(slices.Clone(l.Values[filter]), func(v string) bool { return v == value })
	l.Page = 0
	return l
}

// Cleared returns the table without filters.
func (l List) Cleared() List {
	l.Values = maps.Clone(l.Values)
	maps.DeleteFunc(l.Values, func(f string, _ []string) bool { return !slices.Contains(l.Spec.Kept, f) })
	l.Page = 0
	return l
}

// SortedBy returns the table sorted by a field; by the same one: the other way.
func (l List) SortedBy(field string) List {
	l.Descending = l.Sort == field && !l.Descending
	l.Sort, l.Page = field, 0
	return l
}

// At returns another page of the table.
func (l List) At(page int) List {
	l.Page = max(page, 0)
	return l
}

// Sized returns the first page with another size.
func (l List) Sized(size int) List {
	l.Size, l.Page = size, 0
	return l
}
