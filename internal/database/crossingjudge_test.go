package database_test

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/database"
)

// judge decides which tables of companies a statement reads or changes without confining the
// rows to one company. It knows the part of SQL that this package writes.
//
// A row is confined by a condition that must hold (not one side of an OR, not within a NOT):
// its company is a parameter, or it is found by a key of the list by which a company is
// found, such as the hash of a token; or it refers to a confined row, or a confined row to it.
type judge struct {
	columns map[string][]string // of each table
	primary map[string]string   // the first column of the primary key of each table of companies
	keys    map[string]string   // table.column, by which a company is found
	used    map[string]bool     // of the keys
}

// source is a table, or the result of a query, under its name in a statement.
type source struct {
	table, name string // table is empty for the result of a query
	confined    bool
	inner       []*source // what the query reads
	by          []string  // columns that must be a parameter
}

// condition is that two columns are equal, or one and a parameter. It confines the sources
// from the index floor on, or only alone.
type condition struct {
	left, right string
	query       []*source // that left is selected from, instead of right
	env         []*source
	floor       int
	only        *source
}

// reading is a statement while it is read.
type reading struct {
	*judge
	all        []*source
	conditions []condition
	named      map[string]*source // WITH
}

func newJudge(keys map[string]string) (*judge, error) {
	j := &judge{columns: map[string][]string{}, primary: database.CompanyKeys(), keys: keys, used: map[string]bool{}}
	schema, err := os.ReadFile("schema.sql")
	column := regexp.MustCompile(`(?m)(?:^\s+|, )(\w+) +(?:TEXT|BIGINT|BOOLEAN|DOUBLE)`)
	for _, text := range strings.Split(string(schema), "CREATE TABLE ")[1:] {
		text, _, _ = strings.Cut(text, "\nCREATE ")
		table := strings.Trim(strings.Fields(text)[0], `"`)
		for _, m := range column.FindAllStringSubmatch(text, -1) {
			j.columns[table] = append(j.columns[table], m[1])
		}
	}
	return j, err
}

// crosses returns the tables that are not confined, each with the columns that it is found by,
// without those that follow from another.
func (j *judge) crosses(query string) (found []string) {
	r := &reading{judge: j, named: map[string]*source{}}
	r.query(items(query), nil, 0)
	for {
		r.confine()
		i := slices.IndexFunc(r.all, func(s *source) bool { return r.primary[s.table] != "" && !s.confined })
		if i < 0 {
			slices.Sort(found)
			return slices.Compact(found)
		}
		s := r.all[i]
		slices.Sort(s.by)
		found = append(found, strings.Join(append([]string{s.table}, slices.Compact(s.by)...), " "))
		s.confined = true
	}
}

// confine applies the conditions until nothing more follows.
func (r *reading) confine() {
	for again := true; again; {
		again = false
		for _, c := range r.conditions {
			again = r.apply(c, c.left, c.right) || r.apply(c, c.right, c.left) || again
		}
	}
}

// apply confines the source of one side by the other.
func (r *reading) apply(c condition, side, by string) bool {
	s, column := r.resolve(c.env, side)
	if s == nil || s.confined || c.only != nil && c.only != s || slices.Index(c.env, s) < c.floor {
		return false
	}
	other, its := r.resolve(c.env, by)
	_, unique := r.keys["found by: "+s.table+"."+column]
	switch {
	case c.query != nil:
		s.confined = r.settled(c.query...) && r.refers(s, column)
	case by == "?" && unique:
		r.used["found by: "+s.table+"."+column], s.confined = true, true
	case by == "?" && column == r.company(s):
		s.confined = true
	case by == "?" || by == "IN":
		if r.refers(s, column) {
			s.by = append(s.by, column)
		}
	case other != nil && r.settled(other):
		s.confined = r.follows(s, column, other, its)
	}
	return s.confined
}

// follows reports whether a row of s is of the company of the row of other, since the two columns
// are the same: both are the company, or one refers to the row of the other.
func (r *reading) follows(s *source, column string, other *source, its string) bool {
	switch {
	case other.table == "":
		return r.refers(s, column)
	case column == r.company(s) || its == r.company(other):
		return column == r.company(s) && its == r.company(other)
	}
	return r.primary[s.table] == column || r.primary[other.table] == its
}

// refers reports whether a column says which row of a company is meant.
func (r *reading) refers(s *source, column string) bool {
	return s.table != "" && (column == r.primary[s.table] || strings.HasSuffix(column, "_id"))
}

// settled reports whether all that is of companies is confined, and something is.
func (r *reading) settled(all ...*source) bool {
	some := false
	for _, s := range all {
		if s.inner == nil && r.primary[s.table] == "" {
			continue
		}
		if some = s.confined || s.inner != nil && r.settled(s.inner...); !some {
			return false
		}
	}
	return some
}

// company is the column that says the company of a row; empty if there is none.
func (r *reading) company(s *source) string {
	if s.table == "companies" {
		return "id"
	} else if slices.Contains(r.columns[s.table], "company_id") {
		return "company_id"
	}
	return ""
}

// resolve finds the source of a column, and its name there.
func (r *reading) resolve(env []*source, column string) (*source, string) {
	name, its, qualified := strings.Cut(column, ".")
	for _, s := range slices.Backward(env) {
		if qualified && s.name == name {
			return s, its
		} else if !qualified && slices.Contains(r.columns[s.table], column) {
			return s, column
		}
	}
	return nil, ""
}
