package discovery

import (
	_ "embed" // the documents travel with the program
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./cmd/trim

//go:embed androidmanagement-api.json
var managementJSON []byte

//go:embed fcm-api.json
var messagingJSON []byte

//go:embed pubsub-api.json
var pubsubJSON []byte

// Document is one interface, as its discovery document describes it.
type Document struct {
	Name     string // for example "androidmanagement"
	Version  string // for example "v1"
	Revision string // the day the vendor made the document, YYYYMMDD

	typePrefix string // the vendor's package of protocol types
	global     map[string]*Parameter
	schemas    map[string]*schema
	methods    []*Method // by id
}

// Load reads the document of the Android Management API.
func Load() (*Document, error) {
	return parse(managementJSON, "type.googleapis.com/google.android.devicemanagement.v1.")
}

// LoadMessaging reads the document of Firebase Cloud Messaging.
func LoadMessaging() (*Document, error) {
	return parse(messagingJSON, "type.googleapis.com/google.firebase.fcm.v1.")
}

// LoadPubSub reads the document of Cloud Pub/Sub.
func LoadPubSub() (*Document, error) {
	return parse(pubsubJSON, "type.googleapis.com/google.pubsub.v1.")
}

// schema is a schema or a property of one. Descriptions are left out.
type schema struct {
	ID                   string             `json:"id"`
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Ref                  string             `json:"$ref"`
	Enum                 []string           `json:"enum"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Deprecated           bool               `json:"deprecated"`
}

type resource struct {
	Methods   map[string]*Method   `json:"methods"`
	Resources map[string]*resource `json:"resources"`
}

func parse(text []byte, typePrefix string) (*Document, error) {
	var file struct {
		Name       string                `json:"name"`
		Version    string                `json:"version"`
		Revision   string                `json:"revision"`
		Parameters map[string]*Parameter `json:"parameters"`
		Schemas    map[string]*schema    `json:"schemas"`
		resource
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	d := &Document{
		Name: file.Name, Version: file.Version, Revision: file.Revision,
		typePrefix: typePrefix, global: file.Parameters, schemas: file.Schemas,
	}
	d.collect(&file.resource)
	slices.SortFunc(d.methods, func(a, b *Method) int { return strings.Compare(a.ID, b.ID) })
	return d, nil
}

func (d *Document) collect(r *resource) {
	for _, m := range r.Methods {
		m.prepare(d)
		d.methods = append(d.methods, m)
	}
	for _, sub := range r.Resources {
		d.collect(sub)
	}
}

// resolve follows a reference; a test makes sure that each leads to a schema.
func (d *Document) resolve(s *schema) *schema {
	for s.Ref != "" {
		s = d.schemas[s.Ref]
	}
	return s
}

// Property is what a schema says about one of its members.
type Property struct {
	Type       string   // boolean, integer, number, string, array, object or any
	Format     string   // int64, google-duration and the like, or empty
	Schema     string   // the schema of a member that is a message, or of a list's elements
	Enum       []string // the allowed values, of the elements if it is a list
	Deprecated bool
}

// Property reports what lies at a dotted path of JSON member names, such as
// "deviceRadioState.wifiState" of "Policy". A path goes through lists and maps
// by their elements. It reports false if the path does not exist.
func (d *Document) Property(schemaName, path string) (Property, bool) {
	s := d.schemas[schemaName]
	if s == nil {
		return Property{}, false
	}
	for name := range strings.SplitSeq(path, ".") {
		s = d.element(s).Properties[name]
		if s == nil {
			return Property{}, false
		}
	}
	inner, deprecated := d.element(s), s.Deprecated
	outer := d.resolve(s)
	return Property{Type: outer.Type, Format: inner.Format, Schema: inner.ID, Enum: slices.Clone(inner.Enum), Deprecated: deprecated}, true
}

// element goes through references, lists and maps to what they hold.
func (d *Document) element(s *schema) *schema {
	for {
		s = d.resolve(s)
		switch {
		case s.Items != nil:
			s = s.Items
		case s.AdditionalProperties != nil && s.Properties == nil:
			s = s.AdditionalProperties
		default:
			return s
		}
	}
}
