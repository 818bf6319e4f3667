package emulator

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/discovery"
)

// route is one of the vendor's APIs: its discovery document, and the methods that the emulator
// has. All other methods of the document answer 501.
type route struct {
	document     *discovery.Document
	methods      map[string]handler // by discovery id
	isManagement bool               // the Android Management API: its calls are logged and count for the quota
}

// handler executes a method. Its result is written as JSON.
type handler func(e *Emulator, c *call) (any, error)

// call is a request that was checked against the method's parameters and schema.
type call struct {
	ctx        context.Context
	method     *discovery.Method
	parameters map[string]string // of the path
	query      url.Values
	body       map[string]any // checked against the method's schema
	base       string         // the URL of the emulator as the caller used it, without a path
}

// name returns the name of the resource, or of its parent, from the path; empty: the path has none.
func (c *call) name() string {
	for _, parameter := range []string{"name", "parent", "subscription", "topic", "project"} {
		if value, ok := c.parameters[parameter]; ok {
			return value
		}
	}
	return ""
}

// segment is the n-th segment of the resource's name, counted from 0; empty: there are fewer.
func (c *call) segment(n int) string {
	segments := strings.Split(c.name(), "/")
	if n >= len(segments) {
		return ""
	}
	return segments[n]
}

// methodNames returns the names by which a fault can name a method. The first is the one in
// the log of calls. So androidmanagement.enterprises.devices.get is devices.get and
// enterprises.devices.get, and pubsub.projects.subscriptions.pull is pubsub.pull,
// subscriptions.pull and pubsub.subscriptions.pull.
func methodNames(id string) []string {
	service, rest, _ := strings.Cut(id, ".")
	last := id[strings.LastIndexByte(id, '.')+1:]
	var names []string
	switch service {
	case "androidmanagement":
		names = []string{strings.TrimPrefix(rest, "enterprises."), rest}
	case "pubsub":
		names = []string{"pubsub." + last, strings.TrimPrefix(rest, "projects."), "pubsub." + strings.TrimPrefix(rest, "projects.")}
	default:
		names = []string{service + "." + last, rest}
	}
	names = append(names, id)
	if service == "androidmanagement" {
		names = append(names, "*")
	}
	return slices.Compact(names)
}

// knowsMethod reports whether a fault may name a method.
func (e *Emulator) knowsMethod(name string) bool {
	if name == notificationsMethod || name == tokenMethod {
		return true
	}
	for _, r := range e.routes {
		for id := range r.methods {
			if slices.Contains(methodNames(id), name) {
				return true
			}
		}
	}
	return false
}
