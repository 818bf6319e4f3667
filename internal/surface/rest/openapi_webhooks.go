package rest

import (
	"encoding/json"
	"reflect"

	"github.com/musterhq/muster/internal/event"
	hooks "github.com/musterhq/muster/internal/webhook"
)

// webhook is a member of the document's webhooks: what the receiver of one type of event
// gets, and what it answers.
type webhook struct {
	Summary     string               `json:"summary"`
	Description string               `json:"description"`
	Tags        []string             `json:"tags"`
	Security    []map[string]any     `json:"security"`
	Body        *body                `json:"requestBody"`
	Responses   map[string]*response `json:"responses"`
}

// webhooks describes the events, by their types: the body that a receiver gets is the event
// as list_events has it. The event of a test is no part of a company's history, and has a
// schema of its own.
func (d *document) webhooks() map[string]map[string]*webhook {
	all := map[string]map[string]*webhook{}
	for _, kind := range event.Kinds() {
		all[string(kind.Type)] = d.webhook(kind.Type, kind.Text, reflect.TypeFor[event.View](), event.Sample(kind.Type))
	}
	all[string(hooks.Test)] = d.webhook(hooks.Test, hooks.TestText, reflect.TypeFor[hooks.TestView](), event.Sample(hooks.Test))
	return all
}

// webhook describes one type of event whose body has the schema of a Go type.
func (d *document) webhook(kind event.Type, text string, of reflect.Type, example event.View) map[string]*webhook {
	sample, err := json.Marshal(example)
	if err != nil {
		panic("the event " + string(kind) + " cannot be described: " + err.Error())
	}
	return map[string]*webhook{"post": {
		Summary: string(kind), Description: text, Tags: []string{tagEvents}, Security: []map[string]any{},
		Body:      &body{Required: true, Content: map[string]media{jsonType: {Schema: d.named.Result(of), Example: sample}}},
		Responses: map[string]*response{"2XX": {Description: "The receiver has taken the event."}},
	}}
}
