// Package explain says what another call would be answered, and what it would do,
// without making it: explain_operation.
//
// It decides nothing itself. Kernel.Assess asks the functions that admit and run calls.
package explain

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// Tool is the operation's name.
const Tool = "explain_operation"

// Calls is how many calls a minute a caller may have explained.
const Calls = 60

// Service explains the calls of a registry.
type Service struct {
	Registry *operation.Registry
	Kernel   *operation.Kernel
	// DestructiveLeft returns how many more devices of a company may get a destructive
	// command now, and when another leaves the window, 0 if none counts; limited is false
	// without a limit.
	DestructiveLeft func(ctx context.Context, companyID string) (remaining int, frees time.Duration, limited bool, err error)
	// Status is the HTTP status of a code.
	Status  func(fault.Code) int
	Success func(created bool) int // its HTTP status
}

// Args are the arguments of explain_operation.
type Args struct {
	Operation string           `json:"operation" rule:"required" doc:"Name of the tool that would be called." example:"wipe_device"`
	Arguments operation.Object `json:"arguments" doc:"Its arguments, as the tool takes them; none if omitted." example:"{\"assetId\":\"8k2v0r6m4q1x7t9c3w5y2n8b6d\"}"`
}

// Result is what a call would be answered, and what it would do.
type Result struct {
	Allowed              bool                `json:"allowed" doc:"Whether the call would be accepted now, as far as that does not depend on the vendor."`
	Answer               Answer              `json:"answer" doc:"What the call itself would answer now."`
	Devices              *int                `json:"devices" doc:"How many devices it would concern; null where nothing may be said of its target."`
	Effects              *[]string           `json:"effects" doc:"What it would do, in plain words."`
	Irreversible         *bool               `json:"irreversible" doc:"Whether what it would do cannot be undone."`
	Impact               *string             `json:"impact" enum:"NORMAL|HIGH" doc:"Impact of a change of a policy; null for everything else."`
	RequiresConfirmation *bool               `json:"requiresConfirmation" doc:"Whether a person has to type the policy's name."`
	Approval             *operation.Approval `json:"approval" doc:"What a person has to decide first; null: nothing."`
	Budget               Left                `json:"budget" doc:"What is left of the caller's budget of calls a minute."`
	Destructive          *Left               `json:"destructive" doc:"How many more devices of the company may get destructive commands now; null: there is no limit."`
}

// Answer is the status, the code and the words of an answer.
type Answer struct {
	Status  int     `json:"status" doc:"HTTP status." example:"200"`
	Code    *string `json:"code" doc:"Code of the error; null: none." example:"rate_limited"`
	Message string  `json:"message" doc:"The words of the answer." example:"The call would be accepted."`
}

const accepted = "The call would be accepted."

// Left is what is left of a limit.
type Left struct {
	Remaining    int `json:"remaining" doc:"How many more now." example:"10"`
	ResetSeconds int `json:"resetSeconds" doc:"Seconds until there are more again; 0: all are left." example:"42"`
}

// Define declares explain_operation.
func Define(r *operation.Registry, s *Service) {
	operation.DefineExplained(r, operation.Operation{
		Name: Tool, Title: "Explain a call", Method: "POST", Path: "/explain",
		Description: "Says what a call of another tool would be answered now, and what it would do, without making it: nothing is sent, " +
			"changed or spent. Ask before a call that interrupts a device, erases something or changes a policy, and show the user " +
			"its effects. The answer holds for this moment; what the device or its vendor makes of the call cannot be said. " +
			"It has an allowance of its own of 60 calls a minute.",
		Budget: operation.Apart, Calls: Calls, Dialect: operation.Reads, Effect: operation.Reading,
		Faults: []fault.Code{fault.Unavailable}, Samples: []any{sample()},
	}, s.explain, s.foresee)
	var names []string
	for _, o := range r.All() {
		names = append(names, o.Name)
	}
	r.Find(Tool).OneOf("operation", names)
}

// sample is the explanation of a wipe.
func sample() Result {
	r := Result{Allowed: true, Answer: Answer{Status: 200, Message: accepted},
		Budget: Left{Remaining: 10}, Destructive: &Left{Remaining: 24, ResetSeconds: 1800}}
	r.describe(operation.Forecast{Devices: 1, Irreversible: true,
		Effects: []string{"The device is reset to factory settings: all apps and data are erased, and it is no longer managed.",
			"This cannot be undone."}})
	return r
}

func (s *Service) explain(ctx context.Context, call operation.Call, a Args) (Result, error) {
	o, err := s.find(a)
	if err != nil {
		return Result{}, err
	}
	p := call.Principal
	meta := operation.Meta{RequestID: call.RequestID, Note: call.Note, ReasonField: call.ReasonField}
	arguments := operation.Flat(a.Arguments)
	if o.WantsReason(p) && call.Note.Reason == "" { // as the tool itself would have it
		arguments, meta.Note, meta.Wrong = takeReason(arguments, call.Note)
	}
	assessed, err := s.Kernel.Assess(ctx, o, p, meta, arguments)
	if err != nil {
		return Result{}, err
	}
	remaining, frees, limited, err := s.DestructiveLeft(ctx, p.CompanyID)
	if err != nil {
		return Result{}, err
	}
	result := Result{Answer: s.answer(o, assessed.Fault), Allowed: assessed.Fault == nil,
		Budget: Left{assessed.Budget.Remaining, seconds(assessed.Budget.Reset)}}
	if limited {
		result.Destructive = &Left{remaining, seconds(frees)}
	}
	if f := assessed.Forecast; f != nil {
		result.describe(*f)
	}
	return result, nil
}

// foresee: whether a call can be explained depends on its name alone.
func (s *Service) foresee(_ context.Context, _ operation.Call, a Args) (operation.Forecast, error) {
	_, err := s.find(a)
	return operation.Forecast{Effects: []string{}}, err
}

func (s *Service) find(a Args) (*operation.Operation, error) {
	if o := s.Registry.Find(a.Operation); o != nil {
		return o, nil
	}
	const message = "must be the name of a tool, such as wipe_device"
	return nil, fault.Invalid("operation "+message, fault.Field{Field: "operation", Message: message})
}

// reasonArgument is the argument that a tool has where the company requires a reason.
const reasonArgument = "reason"

func takeReason(arguments operation.Flat, said access.Note) (operation.Flat, access.Note, *fault.Error) {
	rest, reason, wrong := operation.TakeReason(arguments, reasonArgument)
	if wrong != nil || reason == "" {
		return rest, said, wrong
	}
	note, wrong := operation.NoteFields{Reason: reasonArgument}.Read(reason, said.Ticket)
	return rest, note, wrong
}

// answer is what the call would be answered.
func (s *Service) answer(o *operation.Operation, f *fault.Error) Answer {
	if f == nil {
		return Answer{s.Success(o.Created), nil, accepted}
	}
	return Answer{s.Status(f.Code), new(string(f.Code)), f.Detail}
}

func (r *Result) describe(f operation.Forecast) {
	if f.Effects == nil {
		f.Effects = []string{}
	}
	r.Devices, r.Effects, r.Irreversible, r.RequiresConfirmation = &f.Devices, &f.Effects, &f.Irreversible, &f.RequiresConfirmation
	if f.Impact != "" {
		r.Impact = &f.Impact
	}
	r.Approval = f.Approval
}

// seconds rounds up, so that what is said to be over is over.
func seconds(d time.Duration) int { return int((max(0, d) + time.Second - 1) / time.Second) }
