package operation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// exampled has an argument of each kind for which there is another example.
type exampled struct {
	AssetID  string           `path:"assetId"`
	PolicyID string           `json:"policyId" rule:"required"`
	Given    string           `json:"given" example:"as given"`
	Left     string           `json:"left"`
	Mode     string           `json:"mode" rule:"required enum=ON|OFF"`
	Email    string           `json:"email" rule:"required email"`
	App      string           `json:"app" rule:"required package"`
	Text     string           `json:"text" rule:"required"`
	Long     string           `json:"long" rule:"required minchars=40 maxchars=50 maxbytes=60"`
	Short    string           `json:"short" rule:"required maxchars=4"`
	Bytes    string           `json:"bytes" rule:"required maxbytes=3"`
	Flag     bool             `json:"flag" rule:"required"`
	Count    int              `json:"count" rule:"required min=5"`
	Number   int              `json:"number" rule:"required"`
	Sample   int              `json:"sample" example:"7"`
	Apps     []string         `json:"apps" rule:"required package"`
	Any      operation.Object `json:"any" rule:"required"`
	Nested   change           `json:"nested" rule:"required"`
}

const exampleBody = `"policyId":"5h9j3f7p1s6z4g8a2e0k7m9q3v","given":"as given","mode":"ON","email":"operations@example.com",` +
	`"app":"com.example.app","text":"example","long":"example text, as long as need be example","short":"exam","bytes":"exa","flag":true,` +
	`"count":5,"number":1,"sample":7,"apps":["com.example.app"],"any":{},"nested":{"setting":"example"}}`

// An example has what is required, and what has an example of its own, and its rules accept it.
func TestOperation_Example(t *testing.T) {
	t.Parallel()
	const id = "8k2v0r6m4q1x7t9c3w5y2n8b6d"
	var r operation.Registry
	operation.Define(&r, writing, func(context.Context, operation.Call, exampled) (int, error) { return 0, nil })
	o := r.All()[0]
	path, body := o.Example()
	flat := o.FlatExample()
	expect.Equal(t, "a call with a body", expect.Values{"path": {slices.Equal(path, []string{id}), true},
		"body": {string(body), "{" + exampleBody}, "flat": {string(flat), `{"assetId":"` + id + `",` + exampleBody},
		"error": {o.Check(operation.Flat(flat)), error(nil)}})
	bare := writing
	bare.Name = "do_bare"
	operation.Define(&r, bare, func(context.Context, operation.Call, documented) (int, error) { return 0, nil })
	path, body = r.All()[1].Example()
	expect.Equal(t, "a call without a body", expect.Values{"path": {len(path), 1}, "body": {string(body), ""}})
}
