package operation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
)

type chosen struct {
	Color string   `json:"color" rule:"required" doc:"Color."`
	Tags  []string `json:"tags" doc:"Tags."`
}

// Rules implements operation.Ruler.
func (chosen) Rules(r *operation.Rules) {
	r.OneOf("color", func() []string { return []string{"RED", "BLUE"} })
	r.AtMost("tags", func() int { return 2 })
}

// What a list elsewhere allows is in the schema, and binds.
func TestRules_OneOfAndAtMost(t *testing.T) {
	t.Parallel()
	o := operation.Operation{Name: "do_it", Method: "POST", Path: "/x", Needs: access.DevicesRead, Budget: operation.AfterValidation}
	var r operation.Registry
	operation.Define(&r, o, func(context.Context, operation.Call, chosen) (int, error) { return 0, nil })
	schema := r.All()[0].InputSchema()
	if !slices.Equal(schema.Properties["color"].Enum, []any{"RED", "BLUE"}) || *schema.Properties["tags"].MaxItems != 2 {
		t.Errorf("schema: %+v, %+v", schema.Properties["color"], schema.Properties["tags"])
	}
	for body, ok := range map[string]bool{
		`{"color":"RED","tags":["a","b"]}`: true, `{"color":"red"}`: false, `{"color":"BLUE","tags":["a","b","c"]}`: false,
	} {
		t.Run(body, func(t *testing.T) {
			if _, err := echo[chosen](o, operation.Flat([]byte(body))); (err == nil) != ok {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}
