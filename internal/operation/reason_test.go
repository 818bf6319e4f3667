package operation_test

import (
	"context"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// A company that requires reasons refuses calls of keys without one, at the field of the reason.
func TestRun_RequiredReason(t *testing.T) {
	t.Parallel()
	type args struct {
		AssetID string `path:"assetId"`
	}
	var r operation.Registry
	changes := writing
	changes.Effect = operation.Writing
	operation.Define(&r, changes, func(context.Context, operation.Call, args) (any, error) { return nil, nil })
	for _, c := range []struct {
		kind   access.Kind
		rule   access.ReasonRule
		reason string
		want   fault.Code
	}{
		{access.APIKey, access.ReasonAll, "", fault.InvalidArguments},
		{access.APIKey, access.ReasonAll, "a ticket", ""},
		{access.APIKey, access.ReasonDestructive, "", ""},
		{access.APIKey, "", "", ""},
		{access.User, access.ReasonAll, "", ""},
	} {
		p := caller()
		p.Kind = c.kind
		p.Settings.Controls.RequireReason = c.rule
		meta := operation.Meta{ReasonField: "reason", Note: access.Note{Reason: c.reason}}
		out := newKernel().Run(t.Context(), r.All()[0], p, meta, operation.Flat(`{"assetId":"a"}`))
		got := fault.Code("")
		if out.Fault != nil {
			got = out.Fault.Code
		}
		expect.Equal(t, string(c.kind)+", "+string(c.rule)+" with the reason "+c.reason, expect.Values{"refused": {got, c.want}})
	}
}
