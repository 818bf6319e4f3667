package operation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
)

// An operation is a declaration and a handler. The kernel checks the caller and the
// arguments before the handler runs.
func ExampleDefine() {
	type arguments struct {
		AssetID string `path:"assetId" doc:"The asset."`
		Text    string `json:"text" rule:"required" doc:"What the device shows."`
	}
	var operations operation.Registry
	operation.Define(&operations, operation.Operation{Name: "show_text", Method: "POST", Path: "/assets/{assetId}/text",
		Needs: access.DevicesCommand, Dialect: operation.Commands, Effect: operation.Writing},
		func(_ context.Context, _ operation.Call, a arguments) (string, error) {
			return a.AssetID + " shows " + a.Text, nil
		})

	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: time.Now})
	caller := access.Principal{ID: "key", Kind: access.APIKey, Permissions: access.DevicesCommand}
	for _, body := range []string{`{"text":"hello"}`, `{"message":"hello"}`} {
		out := kernel.Run(context.Background(), operations.All()[0], caller, operation.Meta{},
			&operation.Parts{Path: []string{"a1"}, Body: []byte(body)})
		fmt.Println(out.Result, out.Fault)
	}
	// Output:
	// a1 shows hello <nil>
	// <nil> invalid_arguments: message is not known here; text is required
}
