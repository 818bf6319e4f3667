package database_test

import (
	"regexp"
	"slices"
	"strings"
)

// item is a word of a statement, or what stands between parentheses.
type item struct {
	word  string
	group []item
}

var sqlToken = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"?[\w]+"?(?:\.\w+)*|<>|[<>!]=|\|\| ''|\|\||::\w+|\S`)

// ignored are comments, casts, and what keeps SQLite from an index.
var ignored = regexp.MustCompile(`^(--|/\*|::|\|\| '')`)

func items(query string) []item {
	tokens := sqlToken.FindAllString(query, -1)
	all, _ := nest(tokens)
	return all
}

func nest(tokens []string) (all []item, rest []string) {
	for len(tokens) > 0 {
		t := tokens[0]
		tokens = tokens[1:]
		switch {
		case t == ")":
			return all, tokens
		case t == "(":
			var group []item
			group, tokens = nest(tokens)
			all = append(all, item{"(", group})
		case !ignored.MatchString(t):
			all = append(all, item{word: strings.Trim(t, `"`)})
		}
	}
	return all, nil
}

// split cuts at a word, but not within CASE and END, or between BETWEEN and its AND.
func split(all []item, at ...string) (parts [][]item) {
	begin, cases, between := 0, 0, false
	for i, it := range all {
		switch it.word {
		case "CASE":
			cases++
		case "END":
			cases--
		case "BETWEEN":
			between = true
		}
		if cases == 0 && slices.Contains(at, it.word) {
			if !between || it.word != "AND" {
				parts, begin = append(parts, all[begin:i]), i+1
			}
			between = false
		}
	}
	return append(parts, all[begin:])
}

var verbs = []string{"SELECT", "WITH", "UPDATE", "INSERT", "DELETE"}

func isQuery(it item) bool {
	return len(it.group) > 0 && (isQuery(it.group[0]) || slices.Contains(verbs, it.group[0].word))
}

// query reads a statement, and returns what it selects from.
func (r *reading) query(all []item, env []*source, floor int) (own []*source) {
	for len(all) > 0 && (all[0].word == "WITH" || all[0].word == ",") {
		i := slices.IndexFunc(all, isQuery)
		named := &source{}
		r.named[all[1].word] = named // may name itself
		named.inner = r.query(all[i].group, env, len(env))
		all = all[i+1:]
	}
	if len(all) > 0 && isQuery(all[0]) && !slices.ContainsFunc(all, func(it item) bool { return it.word == "UNION" }) {
		return r.query(all[0].group, env, floor)
	}
	branches := split(all, "UNION", "EXCEPT", "INTERSECT")
	if len(branches) > 1 {
		floor = len(env)
	}
	for _, branch := range branches {
		branch = slices.DeleteFunc(slices.Clone(branch), func(it item) bool { return it.word == "ALL" })
		if len(branches) > 1 && len(branch) > 0 && isQuery(branch[0]) {
			own = append(own, r.query(branch[0].group, env, floor)...)
			continue
		}
		own = append(own, r.branch(branch, env, floor)...)
	}
	return own
}

// clause begins a part of a statement that has no more tables or conditions of them.
var clause = regexp.MustCompile(`^(SELECT|GROUP|ORDER|LIMIT|RETURNING|HAVING|SET|FOR|VALUES|CONFLICT|DO|OFFSET|WINDOW)$`)

// branch reads a statement without UNION.
func (r *reading) branch(all []item, env []*source, floor int) []*source {
	type part struct {
		items []item
		only  *source
	}
	for i := 1; i < len(all); i++ { // a join between parentheses
		if (all[i-1].word == "FROM" || all[i-1].word == "JOIN") && all[i].group != nil && !isQuery(all[i]) {
			all = slices.Concat(all[:i], all[i].group, all[i+1:])
		}
	}
	outer, state, left := len(env), "", false
	env = slices.Clone(env)
	var parts []part
	var within []item
	var last *source
	add := func(i int) { last = r.source(all, i, env); env = append(env, last) }
	word := func(i int) string { return all[max(i, 0)].word }
	for i, it := range all {
		switch w := it.word; {
		case w == "FROM" && word(i-1) != "DISTINCT" || w == "JOIN" || w == "USING" || w == "UPDATE" && i == 0 ||
			w == "," && state == "FROM":
			left = w == "JOIN" && word(i-2) != "JOIN" && word(i-1) == "LEFT"
			state = "FROM"
			add(i + 1)
		case w == "INTO":
			state = ""
			add(i + 1)
			r.insert(all, last)
			env = append(env, &source{table: last.table, name: "excluded", confined: true})
		case w == "ON" && word(i+1) != "CONFLICT", w == "WHERE":
			state = "ON"
			parts = append(parts, part{})
			if left && w == "ON" {
				parts[len(parts)-1].only = last
			}
		case clause.MatchString(w), w == "LEFT" && all[i+1].group == nil, w == "CROSS":
			state = ""
		case state == "ON":
			parts[len(parts)-1].items = append(parts[len(parts)-1].items, it)
		case it.group != nil && (state != "FROM" || word(i-1) != "FROM" && word(i-1) != "JOIN" && word(i-1) != ","):
			within = append(within, it)
		}
	}
	r.nested(within, env)
	for _, p := range parts {
		r.must(p.items, env, floor, p.only)
	}
	return env[outer:]
}

// source reads the table, or the query, at i.
func (r *reading) source(all []item, i int, env []*source) *source {
	s := &source{}
	if isQuery(all[i]) {
		s.inner = r.query(all[i].group, env, len(env))
	} else if named := r.named[all[i].word]; named != nil && named.inner != nil {
		s.name, s.inner = all[i].word, []*source{named}
	} else {
		s.name = all[i].word
		if r.columns[s.name] != nil {
			s.table = s.name
			r.all = append(r.all, s)
		}
	}
	for i++; i < len(all) && (all[i].word == "AS" || all[i].group != nil); i++ {
	}
	if i < len(all) && regexp.MustCompile(`^[a-z]\w*$`).MatchString(all[i].word) {
		s.name = all[i].word
	}
	return s
}

// insert says of the target of an INSERT that its rows are of the company that they are
// written with, unless it updates what is there.
func (r *reading) insert(all []item, target *source) {
	i := slices.IndexFunc(all, func(it item) bool { return it.word == "CONFLICT" })
	if target.confined = i < 0 || !slices.ContainsFunc(all[i:], func(it item) bool { return it.word == "UPDATE" }); target.confined {
		return
	}
	for _, it := range all[i+1].group {
		if it.word == r.company(target) {
			target.confined = true
		} else if it.word != "," {
			target.by = append(target.by, it.word)
		}
	}
}

// nested reads the queries within, which confine nothing outside themselves.
func (r *reading) nested(all []item, env []*source) {
	for _, it := range all {
		if isQuery(it) {
			r.query(it.group, env, len(env))
		} else {
			r.nested(it.group, env)
		}
	}
}

// must reads conditions that must hold.
func (r *reading) must(all []item, env []*source, floor int, only *source) {
	for _, c := range split(all, "AND") {
		is := func(i int, word string) bool { return i < len(c) && c[i].word == word }
		switch {
		case len(split(c, "OR")) > 1:
			r.nested(c, env)
		case len(c) == 1 && isQuery(c[0]) && only == nil: // true if it finds a row
			r.query(c[0].group, env, floor)
		case len(c) == 1 && c[0].group != nil:
			r.must(c[0].group, env, floor, only)
		case len(c) == 2 && is(0, "EXISTS") && only == nil:
			r.query(c[1].group, env, floor)
		case len(c) == 3 && (is(1, "=") || is(1, "IN")):
			r.equal(condition{env: env, floor: floor, only: only}, c[0], c[2], is(1, "IN"))
		default:
			r.nested(c, env)
		}
	}
}

// equal adds that left is right, or in it.
func (r *reading) equal(c condition, left, right item, in bool) {
	group := right.group
	switch {
	case isQuery(right):
		c.query = r.query(right.group, c.env, len(c.env))
	case left.group != nil && right.group != nil && !in: // (a, b) = (?, ?)
		for i := range left.group {
			r.equal(c, left.group[i], right.group[i], false)
		}
		return
	case right.group != nil && in: // more than one row
		right = item{word: "IN"}
		if !slices.ContainsFunc(group, func(it item) bool { return it.word == "?" }) {
			return
		}
	case right.group != nil:
		r.nested([]item{right}, c.env)
		return
	}
	if left.group != nil {
		left = left.group[0]
	}
	c.left, c.right = left.word, right.word
	r.conditions = append(r.conditions, c)
}
