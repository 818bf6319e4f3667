package operation

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/slice"
)

// explainTool is the operation's name.
const explainTool = "explain_operation"

// explainCalls is how many calls a minute a caller may have explained.
const explainCalls = 60

// Explainer says what another call would be answered, and what it would do, without making it
// (explain_operation). It decides nothing itself: Kernel.Assess asks the functions that admit and
// run calls.
type Explainer struct {
	Registry *Registry
	Kernel   *Kernel
	// DestructiveLeft returns how many more devices of a company may get a destructive
	// command now, and when another leaves the window, 0 if none counts; limited is false
	// without a limit.
	DestructiveLeft func(ctx context.Context, companyID string) (remaining int, frees time.Duration, limited bool, err error)
	// Status is the HTTP status of a code.
	Status  func(fault.Code) int
	Success func(created bool) int // its HTTP status
}

// ExplainArgs are the arguments of explain_operation.
type ExplainArgs struct {
	Operation string `json:"operation" rule:"required" doc:"Name of the tool that would be called." example:"wipe_device"`
	Arguments Object `json:"arguments" doc:"Its arguments, as the tool takes them; none if omitted." example:"{\"assetId\":\"8k2v0r6m4q1x7t9c3w5y2n8b6d\"}"`
}

// ExplainResult is what a call would be answered, and what it would do.
type ExplainResult struct {
	Allowed              bool          `json:"allowed" doc:"Whether the call would be accepted now, as far as that does not depend on the vendor."`
	Answer               ExplainAnswer `json:"answer" doc:"What the call itself would answer now."`
	Devices              *int          `json:"devices" doc:"How many devices it would concern; null where nothing may be said of its target."`
	Effects              *[]string     `json:"effects" doc:"What it would do, in plain words."`
	Irreversible         *bool         `json:"irreversible" doc:"Whether what it would do cannot be undone."`
	Impact               *string       `json:"impact" enum:"NORMAL|HIGH" doc:"Impact of a change of a policy; null for everything else."`
	RequiresConfirmation *bool         `json:"requiresConfirmation" doc:"Whether a person has to type the policy's name."`
	Approval             *Approval     `json:"approval" doc:"What a person has to decide first; null: nothing."`
	Budget               ExplainLeft   `json:"budget" doc:"What is left of the caller's budget of calls a minute."`
	Destructive          *ExplainLeft  `json:"destructive" doc:"How many more devices of the company may get destructive commands now; null: there is no limit."`
}

// ExplainAnswer is the status, the code and the words of an answer.
type ExplainAnswer struct {
	Status  int     `json:"status" doc:"HTTP status." example:"200"`
	Code    *string `json:"code" doc:"Code of the error; null: none." example:"rate_limited"`
	Message string  `json:"message" doc:"The words of the answer." example:"The call would be accepted."`
}

const wouldBeAccepted = "The call would be accepted."

// ExplainLeft is what is left of a limit.
type ExplainLeft struct {
	Remaining    int `json:"remaining" doc:"How many more now." example:"10"`
	ResetSeconds int `json:"resetSeconds" doc:"Seconds until there are more again; 0: all are left." example:"42"`
}

// DefineExplain declares explain_operation.
func DefineExplain(r *Registry, s *Explainer) {
	DefineExplained(r, Operation{
		Name: explainTool, Title: "Explain a call", Method: "POST", Path: "/explain",
		Description: "Says what a call of another tool would be answered now, and what it would do, without making it: nothing is sent, " +
			"changed or spent. Ask before a call that interrupts a device, erases something or changes a policy, and show the user " +
			"its effects. The answer holds for this moment; what the device or its vendor makes of the call cannot be said. " +
			"It has an allowance of its own of 60 calls a minute.",
		Budget: Apart, Calls: explainCalls, Dialect: Reads, Effect: Reading,
		Faults: []fault.Code{fault.Unavailable}, Samples: []any{sampleExplanation()},
	}, s.explain, s.foresee)
	plan := r.Find(explainTool).args
	plan.fields[plan.index["operation"]].rule.enum = slice.Map(r.All(), func(o *Operation) string { return o.Name })
}

// sampleExplanation is the explanation of a wipe.
func sampleExplanation() ExplainResult {
	r := ExplainResult{Allowed: true, Answer: ExplainAnswer{Status: 200, Message: wouldBeAccepted},
		Budget: ExplainLeft{Remaining: 10}, Destructive: &ExplainLeft{Remaining: 24, ResetSeconds: 1800}}
	r.describe(Forecast{Devices: 1, Irreversible: true,
		Effects: []string{"The device is reset to factory settings: all apps and data are erased, and it is no longer managed.",
			"This cannot be undone."}})
	return r
}

func (s *Explainer) explain(ctx context.Context, call Call, a ExplainArgs) (ExplainResult, error) {
	o, err := s.find(a)
	if err != nil {
		return ExplainResult{}, err
	}
	p := call.Principal
	meta := Meta{RequestID: call.RequestID, Note: call.Note, ReasonField: call.ReasonField}
	arguments := Flat(a.Arguments)
	if o.WantsReason(p) && call.Note.Reason == "" { // as the tool itself would have it
		arguments, meta.Note, meta.Wrong = takeReason(arguments, call.Note)
	}
	assessed, err := s.Kernel.Assess(ctx, o, p, meta, arguments)
	if err != nil {
		return ExplainResult{}, err
	}
	remaining, frees, limited, err := s.DestructiveLeft(ctx, p.CompanyID)
	if err != nil {
		return ExplainResult{}, err
	}
	result := ExplainResult{Answer: s.answer(o, assessed.Fault), Allowed: assessed.Fault == nil,
		Budget: ExplainLeft{assessed.Budget.Remaining, wholeSeconds(assessed.Budget.Reset)}}
	if limited {
		result.Destructive = &ExplainLeft{remaining, wholeSeconds(frees)}
	}
	if f := assessed.Forecast; f != nil {
		result.describe(*f)
	}
	return result, nil
}

// foresee: whether a call can be explained depends on its name alone.
func (s *Explainer) foresee(_ context.Context, _ Call, a ExplainArgs) (Forecast, error) {
	_, err := s.find(a)
	return Forecast{Effects: []string{}}, err
}

func (s *Explainer) find(a ExplainArgs) (*Operation, error) {
	if o := s.Registry.Find(a.Operation); o != nil {
		return o, nil
	}
	return nil, fault.InvalidField("operation", "must be the name of a tool, such as wipe_device")
}

// reasonArgument is the argument that a tool has where the company requires a reason.
const reasonArgument = "reason"

func takeReason(arguments Flat, given access.Note) (Flat, access.Note, *fault.Error) {
	rest, reason, wrong := TakeReason(arguments, reasonArgument)
	if wrong != nil || reason == "" {
		return rest, given, wrong
	}
	note, wrong := NoteFields{Reason: reasonArgument}.Read(reason, given.Ticket)
	return rest, note, wrong
}

// answer is what the call would be answered.
func (s *Explainer) answer(o *Operation, f *fault.Error) ExplainAnswer {
	if f == nil {
		return ExplainAnswer{s.Success(o.Created), nil, wouldBeAccepted}
	}
	return ExplainAnswer{s.Status(f.Code), new(string(f.Code)), f.Detail}
}

func (r *ExplainResult) describe(f Forecast) {
	if f.Effects == nil {
		f.Effects = []string{}
	}
	r.Devices, r.Effects, r.Irreversible, r.RequiresConfirmation = &f.Devices, &f.Effects, &f.Irreversible, &f.RequiresConfirmation
	if f.Impact != "" {
		r.Impact = &f.Impact
	}
	r.Approval = f.Approval
}

// wholeSeconds rounds up, so that what is said to be over is over.
func wholeSeconds(d time.Duration) int { return int((max(0, d) + time.Second - 1) / time.Second) }
