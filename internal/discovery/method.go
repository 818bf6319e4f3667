package discovery

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Method is one method of the interface.
type Method struct {
	ID         string                `json:"id"` // for example "androidmanagement.enterprises.devices.issueCommand"
	HTTPMethod string                `json:"httpMethod"`
	Path       string                `json:"path"`     // for example "v1/{+name}:issueCommand"
	FlatPath   string                `json:"flatPath"` // for example "v1/enterprises/{enterprisesId}/devices/{devicesId}:issueCommand"
	Parameters map[string]*Parameter `json:"parameters"`
	Request    Reference             `json:"request"`
	Response   Reference             `json:"response"`
	Scopes     []string              `json:"scopes"` // a call's token has one of them

	global  map[string]*Parameter
	pattern *regexp.Regexp // of the whole path, without the leading slash; groups are path parameters
}

// Reference names a schema; it is empty where a method has none.
type Reference struct {
	Schema string `json:"$ref"`
}

// Parameter is a parameter of a method's path or query.
type Parameter struct {
	Location string   `json:"location"` // path or query
	Type     string   `json:"type"`
	Pattern  string   `json:"pattern"`
	Enum     []string `json:"enum"`
	Repeated bool     `json:"repeated"`
}

// templateVariable finds {name} and {+name} in a path.
var templateVariable = regexp.MustCompile(`\{\+?([A-Za-z0-9_]+)\}`)

// prepare compiles the path: each variable becomes a group with the pattern of
// its parameter. What is between the variables is letters, digits, slashes and colons.
func (m *Method) prepare(d *Document) {
	m.global = d.global
	pattern := templateVariable.ReplaceAllStringFunc(m.Path, func(variable string) string {
		name, inner := strings.Trim(variable, "{+}"), "[^/]+"
		if p := m.Parameters[name]; p != nil && p.Pattern != "" {
			inner = strings.TrimSuffix(strings.TrimPrefix(p.Pattern, "^"), "$")
		}
		// An id never holds a colon: it starts the custom verb.
		return "(?P<" + name + ">" + strings.ReplaceAll(inner, "[^/]", "[^/:]") + ")"
	})
	m.pattern = regexp.MustCompile("^" + pattern + "$")
}

// Methods gives all methods, by id.
func (d *Document) Methods() []*Method { return slices.Clone(d.methods) }

// Match finds the method that a request calls and the values of its path
// parameters. The path is the decoded one, with its leading slash.
func (d *Document) Match(httpMethod, path string) (*Method, map[string]string, bool) {
	path = strings.TrimPrefix(path, "/")
	for _, m := range d.methods {
		if m.HTTPMethod != httpMethod {
			continue
		}
		groups := m.pattern.FindStringSubmatch(path)
		if groups == nil {
			continue
		}
		values := map[string]string{}
		for i, name := range m.pattern.SubexpNames()[1:] {
			values[name] = groups[i+1]
		}
		return m, values, true
	}
	return nil, nil, false
}

// CheckQuery checks the query of a call: only parameters of the method and those
// that every method has, of the right type, once unless they may repeat. The
// error is an [*Error].
func (m *Method) CheckQuery(query url.Values) error {
	var found Error
	for _, name := range slices.Sorted(maps.Keys(query)) {
		p := m.Parameters[name]
		if p == nil || p.Location != "query" {
			p = m.global[name]
		}
		if p == nil {
			found.add("", fmt.Sprintf("Invalid JSON payload received. Unknown name %q: Cannot bind query parameter. Field '%s' could not "+
				"be found in request message.", name, name))
			continue
		}
		if len(query[name]) > 1 && !p.Repeated {
			found.add(snake(name), fmt.Sprintf("Invalid value at '%s', the parameter may be given once", snake(name)))
			continue
		}
		for _, value := range query[name] {
			if problem := p.check(value); problem != "" {
				found.add(snake(name), fmt.Sprintf("Invalid value at '%s' (%s), %q", snake(name), problem, value))
			}
		}
	}
	return found.orNil()
}

// check returns the vendor's name of the type that value does not have; empty: it has it.
func (p *Parameter) check(value string) string {
	switch {
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, value):
		return "TYPE_ENUM"
	case p.Type == "boolean" && value != "true" && value != "false":
		return "TYPE_BOOL"
	case p.Type == "integer":
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return "TYPE_INT32"
		}
	}
	return ""
}
