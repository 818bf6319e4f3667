package rest

import (
	"encoding/json"
	"reflect"

	"github.com/musterhq/muster/internal/event"
)

// webhook describes what the receiver of one type of event gets, and what it answers.
type webhook struct {
	Summary     string               `json:"summary"`
	Description string               `json:"description"`
	Tags        []string             `json:"tags"`
	Security    []map[string]any     `json:"security"`
	Body        *body                `json:"requestBody"`
	Responses   map[string]*response `json:"responses"`
}

// webhooks describes the events, by their types: the body that a receiver gets is the event
// as list_events has it.
func (d *document) webhooks() map[string]map[string]*webhook {
	schema := d.named.Result(reflect.TypeFor[event.View]())
	all := map[string]map[string]*webhook{}
	for _, kind := range event.Kinds() {
		sample, err := json.Marshal(event.Sample(kind.Type))
		if err != nil {
			panic("the event " + string(kind.Type) + " cannot be described: " + err.Error())
		}
		all[string(kind.Type)] = map[string]*webhook{"post": {
			Summary: string(kind.Type), Description: kind.Text, Tags: []string{tagEvents}, Security: []map[string]any{},
			Body:      &body{Required: true, Content: map[string]media{jsonType: {Schema: schema, Example: sample}}},
			Responses: map[string]*response{"2XX": {Description: "The receiver has taken the event."}},
		}}
	}
	return all
}
