package command

import (
	"cmp"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// Result is the command result object (contract 2.2).
type Result struct {
	AssetID   string               `json:"assetId" doc:"The device's asset id: its pathName."`
	Type      Type                 `json:"type" doc:"What was commanded."`
	Status    string               `json:"status" enum:"SUCCESS|IN_PROGRESS|UNCONFIRMED" doc:"SUCCESS, IN_PROGRESS until the device confirms, or UNCONFIRMED: the outcome is not known."`
	CreatedAt *operation.Timestamp `json:"createdAt,omitempty" doc:"When the command was accepted."`
	Detail    string               `json:"detail,omitempty" doc:"With UNCONFIRMED: what happened and what to do."`
}

// Unconfirmed implements operation.Uncertain: REST answers 202.
func (r Result) Unconfirmed() bool { return r.Status == Unconfirmed.Status() }

// resultOf is the result of a command that is not known to have failed.
func resultOf(c Command, slug string, m asset.Management) Result {
	r := Result{AssetID: resource.Of(slug, resource.Assets, c.AssetID), Type: c.Type, Status: c.State.Status()}
	if c.Type == NotificationMessage && c.State == Sent {
		r.Status = Succeeded.Status() // accepted for delivery is all that a message promises (contract 3.3)
	}
	if m == asset.Agent || !c.Type.Row().Silent { // a device whose management is no longer known counts as the platform's
		r.CreatedAt = operation.TimestampOf(c.CreatedAt)
	}
	return r
}

// unconfirmedOf is the result of a command whose outcome is unknown; detail,
// if not empty, says why and what to do.
func unconfirmedOf(c Command, slug string, m asset.Management, detail string) Result {
	c.State = Unconfirmed
	r := resultOf(c, slug, m)
	if !c.Type.Row().Early {
		r.CreatedAt = nil // contract 7.1, 202
	}
	r.Detail = cmp.Or(detail, notKnown("nothing confirmed it"))
	return r
}

// notKnown is the guidance of an unconfirmed command.
func notKnown(because string) string {
	return "it is not known whether the device will carry out the command: " + because +
		". Do not send it again: look at the command history, and ask the user before resending."
}
