package rest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/edge"
)

// The reference page is written once, when it is first asked for, from the OpenAPI document. It
// needs no script to be read, makes no request to another server, and works offline.

const referencePath = "/api/docs"

//go:embed reference
var referenceFiles embed.FS

// referencePolicy allows the page its own two files and nothing else.
const referencePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// newReference returns what serves the page, its stylesheet and its script.
func newReference(registry *operation.Registry, publicURL string) http.Handler {
	pages := sync.OnceValue(func() map[string]reply {
		all := map[string]reply{}
		add := func(path, contentType string, body []byte) {
			all[path] = reply{status: http.StatusOK, contentType: contentType, body: body,
				header: []field{{"Content-Security-Policy", referencePolicy}, {"Referrer-Policy", "no-referrer"}}}
		}
		page := writeReference(registry, publicURL)
		add(referencePath, "text/html; charset=utf-8", page)
		add(referencePath+"/", "text/html; charset=utf-8", page)
		add(referencePath+"/reference.css", "text/css; charset=utf-8", referenceFile("reference.css"))
		add(referencePath+"/reference.js", "text/javascript; charset=utf-8", referenceFile("reference.js"))
		return all
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages()[r.URL.Path]
		if !ok || !isRead(r.Method) {
			http.NotFound(w, r)
			return
		}
		page.write(w, r)
	})
}

func referenceFile(name string) []byte {
	text, err := referenceFiles.ReadFile("reference/" + name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return text
}

// The page's own view of the document.
type (
	referencePage struct {
		Server   string
		Intro    template.HTML
		Sections []referenceSection
		Terms    []termGroup
	}
	referenceSection struct {
		ID, Name, Description string
		Operations            []referenceOperation
	}
	referenceOperation struct {
		*described
		Method, Path    string
		Arguments       []referenceField
		Result          []referenceField
		Call, Answer    string
		AnswerStatus    string
		Answers         []referenceAnswer
		PermissionsText string
	}
	referenceField struct {
		Name, Where, Type, Text string
		Required                bool
	}
	referenceAnswer struct {
		Status, Text, Codes string
	}
)

func writeReference(registry *operation.Registry, publicURL string) []byte {
	d := describe(registry, publicURL)
	page := referencePage{Server: d.Servers[0].URL, Intro: paragraphs(introduction), Terms: terms()}
	for _, t := range d.Tags {
		section := referenceSection{ID: strings.ReplaceAll(strings.ToLower(t.Name), " ", "-"), Name: t.Name, Description: t.Description}
		for _, o := range registry.All() {
			if x := d.Paths[o.Path][strings.ToLower(o.Method)]; x.Tags[0] == t.Name {
				section.Operations = append(section.Operations, d.reference(x))
			}
		}
		if len(section.Operations) > 0 {
			page.Sections = append(page.Sections, section)
		}
	}
	var b bytes.Buffer
	parsed := template.Must(template.New("").Parse(string(referenceFile("reference.html"))))
	if err := parsed.Execute(&b, page); err != nil {
		panic("the reference page cannot be written: " + err.Error())
	}
	return b.Bytes()
}

func (d *document) reference(x *described) referenceOperation {
	o := x.operation
	view := referenceOperation{described: x, Method: o.Method, Path: o.Path, PermissionsText: strings.Join(x.Permissions, ", ")}
	for _, declared := range o.Parameters() {
		p := asParameter(declared)
		view.Arguments = append(view.Arguments, referenceField{Name: p.Name, Where: p.In, Type: typeText(p.Schema), Text: p.Description,
			Required: p.Required})
	}
	if o.HasBody() {
		view.Arguments = append(view.Arguments, fieldsOf(o.BodySchema(), "", "body")...)
	}
	answer := plainType
	if !o.Plain() {
		answer, view.Result = jsonType, fieldsOf(o.ResultSchema(nil), "", "")
	}
	view.Call = callText(d.Servers[0].URL, o)
	view.AnswerStatus = strconv.Itoa(edge.Success(o.Created))
	view.Answer = indented(x.Responses[view.AnswerStatus].Content[answer].Example)
	view.Answers = d.answersOf(x)
	return view
}

// fieldsOf flattens an object into rows: managedDevice.location.latitude.
func fieldsOf(s *jsonschema.Schema, path, where string) []referenceField {
	var rows []referenceField
	for _, name := range s.PropertyOrder {
		member := s.Properties[name]
		rows = append(rows, referenceField{Name: path + name, Where: where, Type: typeText(member), Text: member.Description,
			Required: slices.Contains(s.Required, name)})
		inner := member
		nested := path + name
		if member.Items != nil {
			inner, nested = member.Items, nested+"[]"
		}
		rows = append(rows, fieldsOf(inner, nested+".", where)...)
	}
	return rows
}

// typeText says in words what a schema says in keywords.
func typeText(s *jsonschema.Schema) string {
	if s.Items != nil {
		return "array of " + typeText(s.Items) + bounds(s.MinItems, s.MaxItems, " entries")
	}
	text := s.Type
	if s.Types != nil {
		text = strings.Join(s.Types, " or ")
	}
	if s.Format != "" && s.Format != "password" {
		text += ", " + s.Format
	}
	if len(s.Enum) > 0 {
		text += ": " + strings.Join(slice.Map(s.Enum, func(v any) string { return fmt.Sprint(v) }), ", ")
	}
	text += bounds(s.MinLength, s.MaxLength, " characters")
	if s.Minimum != nil && s.Maximum != nil {
		text += ", " + strconv.FormatFloat(*s.Minimum, 'f', -1, 64) + " to " + strconv.FormatFloat(*s.Maximum, 'f', -1, 64)
	}
	if s.Default != nil {
		text += ", default " + strings.Trim(string(s.Default), `"`)
	}
	if text == "" {
		return "any value"
	}
	return text
}

func bounds(low, high *int, unit string) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf(", %d to %d%s", *low, *high, unit)
	case high != nil:
		return fmt.Sprintf(", up to %d%s", *high, unit)
	case low != nil:
		return fmt.Sprintf(", at least %d%s", *low, unit)
	}
	return ""
}

// callText is the operation's example as a command line.
func callText(server string, o *operation.Operation) string {
	text := "curl"
	if o.Method != http.MethodGet {
		text += " -X " + o.Method
	}
	text += " " + server + samplePath(o) + ` \` + "\n  -H 'X-API-Key: '\"$MUSTER_KEY\""
	if _, body := o.Example(); o.HasBody() {
		text += ` \` + "\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(string(body), "'", `'\''`) + "'"
	}
	return text
}

// answersOf lists the statuses with the codes that each may carry.
func (d *document) answersOf(x *described) []referenceAnswer {
	var rows []referenceAnswer
	for status, r := range x.Responses {
		if r.Ref != "" {
			r = d.Components.Responses[r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]]
		}
		row := referenceAnswer{Status: status, Text: r.Description}
		for _, m := range r.Content {
			row.Codes = strings.Join(slices.Sorted(maps.Keys(m.Examples)), ", ")
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b referenceAnswer) int { return strings.Compare(a.Status, b.Status) })
	return rows
}

func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return string(text)
	}
	return b.String()
}

// paragraphs turns our own introduction into HTML: paragraphs, **strong** and
// `code`.
func paragraphs(text string) template.HTML {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		b.WriteString("<p>" + spans(spans(template.HTMLEscapeString(paragraph), "**", "strong"), "`", "code") + "</p>\n")
	}
	return template.HTML(b.String()) // escaped above
}

// spans turns text between pairs of a mark into an element.
func spans(text, mark, element string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, mark) {
		if i%2 == 1 {
			part = "<" + element + ">" + part + "</" + element + ">"
		}
		b.WriteString(part)
	}
	return b.String()
}
