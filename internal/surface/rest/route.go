package rest

import (
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/operation"
)

// node is one segment of the paths of all operations.
type node struct {
	fixed   map[string]*node
	param   *node // any one segment, or a whole resource name
	methods map[string]*operation.Operation
}

func newNode() *node {
	return &node{fixed: map[string]*node{}, methods: map[string]*operation.Operation{}}
}

// newRoutes builds the tree from the paths of the registry.
func newRoutes(registry *operation.Registry) *node {
	root := newNode()
	for _, o := range registry.All() {
		at := root
		for segment := range strings.SplitSeq(strings.TrimPrefix(o.Path, "/"), "/") {
			at = at.child(segment)
		}
		if at.methods[o.Method] != nil {
			panic("two operations at " + o.Method + " " + o.Path)
		}
		at.methods[o.Method] = o
	}
	return root
}

func (n *node) child(segment string) *node {
	if strings.HasPrefix(segment, "{") {
		if n.param == nil {
			n.param = newNode()
		}
		return n.param
	}
	if n.fixed[segment] == nil {
		n.fixed[segment] = newNode()
	}
	return n.fixed[segment]
}

// find walks an escaped path, relative to base_url, and returns the node where
// it ends and the values that stand for parameters; nil: no such path.
func (n *node) find(escaped string) (*node, []string) {
	segments, ok := cut(escaped)
	if !ok {
		return nil, nil
	}
	var values []string
	for len(segments) > 0 && n != nil {
		if next := n.fixed[segments[0]]; next != nil {
			n, segments = next, segments[1:]
			continue
		}
		var value string
		value, segments = takeName(segments)
		values = append(values, value)
		n = n.param
	}
	if n == nil || len(n.methods) == 0 {
		return nil, nil
	}
	return n, values
}

// allowed lists the node's methods as an Allow header has them.
func (n *node) allowed() string {
	var methods []string
	for method := range n.methods {
		methods = append(methods, method)
		if method == "GET" {
			methods = append(methods, "HEAD")
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// cut splits an escaped path into its segments and unescapes each. An empty
// segment ("//", a slash at the end) and a dot segment name nothing: such a
// path is refused, never cleaned or redirected.
func cut(escaped string) ([]string, bool) {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, false
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		text, err := url.PathUnescape(segment)
		if err != nil || text == "" || text == "." || text == ".." {
			return nil, false
		}
		segments[i] = text
	}
	return segments, true
}

// nameSegments is the length of enterprises/<company>/<collection>/<id>.
const nameSegments = 4

// takeName takes the value of one parameter off the segments: one of them, or
// the four of a resource name whose slashes are not escaped
// (contract 4.6). Whose name it is, and of what, is not judged here.
func takeName(segments []string) (string, []string) {
	if segments[0] != "enterprises" || len(segments) < nameSegments {
		return segments[0], segments[1:]
	}
	for _, segment := range segments[:nameSegments] {
		if strings.Contains(segment, "/") { // half of the slashes escaped: no form of a name
			return segments[0], segments[1:]
		}
	}
	return strings.Join(segments[:nameSegments], "/"), segments[nameSegments:]
}
