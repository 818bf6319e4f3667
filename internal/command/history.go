package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// Entry is a command in the history: exactly these members, null where unknown
// (contract 2.3). Who sent it is the portal's to show (contract 1.6).
type Entry struct {
	Type       Type                 `json:"type" doc:"What was commanded."`
	Status     string               `json:"status" enum:"IN_PROGRESS|SUCCESS|ERROR|UNCONFIRMED" doc:"IN_PROGRESS, SUCCESS, ERROR or UNCONFIRMED."`
	CreatedAt  *operation.Timestamp `json:"createdAt" doc:"When it was accepted."`
	FeedbackAt *operation.Timestamp `json:"feedbackAt" doc:"When the device itself spoke of it; null: it has not."`
	Outcome    *string              `json:"outcome" doc:"What came of it, in a few words." example:"the device confirmed it"`
}

// Entry returns the command as the history shows it.
func (c Command) Entry() Entry {
	e := Entry{Type: c.Type, Status: c.State.Status(), CreatedAt: operation.TimestampOf(c.CreatedAt),
		FeedbackAt: operation.TimestampOf(c.FeedbackAt)}
	if c.Outcome != "" {
		e.Outcome = &c.Outcome
	}
	return e
}

// HistoryArgs are the arguments of list_device_commands.
type HistoryArgs struct {
	asset.Target
	operation.PageRequest
	Sort string `query:"sort" rule:"enum=createdAt,desc default=createdAt,desc" doc:"Field and direction: the history is always newest first."`
}

func defineHistory(r *operation.Registry, s *Service) {
	operation.Define(r, operation.Operation{
		Name: "list_device_commands", Title: "List device commands", Method: "GET", Path: "/assets/{assetId}/commands",
		Description: "Lists the commands that were sent to one device, newest first, with how each ended. " +
			"Look here after a command that was IN_PROGRESS or UNCONFIRMED, before anything is sent again.",
		Needs: access.DevicesRead, Dialect: operation.Reads, Effect: operation.Reading,
		Faults: []fault.Code{fault.NotFound, fault.Unavailable},
	}, s.History)
}

// History answers GET /assets/{assetId}/commands.
func (s *Service) History(ctx context.Context, call operation.Call, args HistoryArgs) (operation.Page[Entry], error) {
	a, err := asset.Find(ctx, s.Inventory, call.Principal, args.AssetID)
	if err != nil {
		return operation.Page[Entry]{}, err
	}
	commands, total, err := s.Store.History(ctx, a.CompanyID, a.ID, args.PageRequest)
	return operation.PageOf(args.PageRequest, commands, total, Command.Entry), err
}

// Tally counts the commands of one day by what has become of them.
type Tally struct {
	Day   time.Time // its beginning, in UTC
	State State
	Count int64
}

// Overview reads commands across devices, for people. Policies limits all of
// it to devices of these policies; nil: no limit. Each method fails as the database does.
type Overview interface {
	// Tallies counts the commands since a time by day and state.
	Tallies(ctx context.Context, companyID string, policies []string, since time.Time) ([]Tally, error)
	// Unfinished counts the commands that are not final and were created from a
	// time until before another, up to limit.
	Unfinished(ctx context.Context, companyID string, policies []string, from, before time.Time, limit int) (int, error)
	// UnfinishedList returns the newest of them, each with the name of its asset.
	UnfinishedList(ctx context.Context, companyID string, policies []string, from, before time.Time, limit int) ([]Named, error)
}

// Named is a command with the identification of its asset.
type Named struct {
	Command
	Identification string
}
