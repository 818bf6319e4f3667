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

// List is the state of a table, as its address bears it. What the address
// says wrongly is left out: a link that is a little old still opens.
type List struct {
	Spec       ListSpec
	Values     url.Values // of the filters, and of other parameters kept
	Sort       string
	Descending bool
	Page, Size int // Page from 0
}

// Sizes are the page sizes on offer.
func Sizes() []int { return []int{25, 50, 100} }

// maxPage and maxValues bound what an address may ask for.
const (
	maxPage   = 1_000_000
	maxValues = 50
)

// ParseList reads the state of a table from the query.
func ParseList(spec ListSpec, query url.Values) List {
	l := List{Spec: spec, Values: url.Values{}, Size: Sizes()[0]}
	for _, f := range slices.Concat(spec.Filters, spec.Kept) {
		for _, value := range query[f][:min(len(query[f]), maxValues)] {
			if value = strings.TrimSpace(value); value != "" && len(value) <= 200 {
				l.Values.Add(f, value)
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

// Get is a filter's first value.
func (l List) Get(filter string) string { return l.Values.Get(filter) }

// Filtered is how many filters there are.
func (l List) Filtered() int {
	n := 0
	for _, f := range l.Spec.Filters {
		n += len(l.Values[f])
	}
	return n
}

// URL is the address of the table as it is.
func (l List) URL() string {
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
	if len(q) == 0 {
		return l.Spec.Path
	}
	return l.Spec.Path + "?" + q.Encode()
}

// And is the address with one parameter more.
func (l List) And(key, value string) string {
	address := l.URL()
	if strings.Contains(address, "?") {
		return address + "&" + key + "=" + url.QueryEscape(value)
	}
	return address + "?" + key + "=" + url.QueryEscape(value)
}

// QueryText is the query of the address, for an export of the same list.
func (l List) QueryText() string {
	_, query, _ := strings.Cut(l.At(0).URL(), "?")
	return query
}

// SortText is the sort parameter.
func (l List) SortText() string {
	if l.Descending {
		return l.Sort + ",desc"
	}
	return l.Sort + ",asc"
}

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
	for _, f := range l.Spec.Filters {
		l.Values.Del(f)
	}
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
