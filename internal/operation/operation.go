// Package operation is the kernel: an operation of the public interface is
// declared once, and REST, MCP, OpenAPI, CLI help and the portal's forms
// follow from the declaration (contract 1.5).
//
// A verb declares its operations in its operations.go with Define; a surface
// walks the Registry. Kernel.Run is the one admission pipeline
// (contract 5.10): authenticated, [budget], permission and gate,
// validation, [budget], handler.
package operation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Dialect names the error shapes that REST speaks for an operation
// (contract 7.2 to 7.4).
type Dialect int

// The dialects.
const (
	Reads        Dialect = iota // asset, policy list and history reads
	FirstFour                   // lock, lost-mode, found, message
	Commands                    // the other twelve commands
	Policies                    // contract 7.3
	Provisioning                // contract 7.4
)

// Effect says what an operation may do to the world.
type Effect int

// The effects, from harmless to irreversible.
const (
	Reading Effect = iota
	Writing
	Destroying // cannot be undone: the four destructive commands, clear-app-data
)

// Ahead says what for an operation's handler first reads its asset.
type Ahead int

// The reasons to read an asset.
const (
	NotAhead     Ahead = iota
	AheadToShow        // with Asset of asset.Store
	AheadToOrder       // with CommandTarget of command.Inventory, and the agent
)

// Operation is one declaration. Paths are relative to base_url and hold their
// path arguments in braces.
type Operation struct {
	Name        string // the MCP tool's name (contract 4.5)
	Title       string // for people
	Description string // one full sentence or more: what it does, to which devices, whether it can be undone
	Method      string
	Path        string
	Created     bool // success is 201 rather than 200

	Needs   access.Permission
	Gate    access.Gate
	Budget  Budget
	Calls   int // with Apart: how many a minute
	Dialect Dialect
	Effect  Effect
	// Disruptive: the effect is more than an addition. It interrupts a device, or
	// takes something away or replaces it. What destroys does so in any case.
	Disruptive bool
	// Repeatable: a second call with the same arguments changes nothing more. Reads always are.
	Repeatable bool
	// Open: it needs no permission. Its result is what the caller may see.
	Open bool
	// Waits: over REST, the call may take a minute before there is something to answer.
	Waits bool
	// Ahead: the handler first reads the asset that its assetId names. The store may read it
	// earlier: see access.Ahead.
	Ahead Ahead
	// BodyOptional: no body at all stands for one without members.
	BodyOptional bool
	// Faults are the codes that the handler may end in, beside those of the
	// pipeline itself (unauthorized, forbidden, invalid_arguments,
	// rate_limited, internal_error), which follow from the fields above.
	Faults []fault.Code
	// Unconfirmed: the result may be an outcome that is not known (contract 7.1, 202).
	Unconfirmed bool
	// Samples are results for descriptions: of a success, and of an outcome that
	// is not known where there is such. Without them the examples of a
	// description are made from the members' types.
	Samples []any

	args     *plan
	pathArgs []string
	result   reflect.Type
	// run takes a pointer to the argument struct.
	run func(ctx context.Context, call Call, args any) (any, error)
	// foresee says what run would do; nil: run only reads, or it is not known.
	foresee func(ctx context.Context, call Call, args any) (Forecast, error)
}

// Args is the struct type of the operation's arguments.
func (o *Operation) Args() reflect.Type { return o.args.typ }

// Result is the type of the operation's result.
func (o *Operation) Result() reflect.Type { return o.result }

// Plain reports whether REST answers with plain text.
func (o *Operation) Plain() bool { return o.result.Implements(reflect.TypeFor[Plain]()) }

// Call is what a handler knows of the request beside its arguments.
type Call struct {
	Principal access.Principal
	// RequestID is the id that the answer and the log carry.
	RequestID string
	// IdempotencyRef, if not empty, identifies the request across repetitions
	// (contract 4.8). A command's intent keeps it, so that after
	// a crash the repetition finds the command instead of sending another.
	IdempotencyRef string
	// Note is why the caller calls, in its own words, and ReasonField is what the
	// surface calls its reason.
	Note        access.Note
	ReasonField string
}

// Uncertain is a result whose outcome may be unknown. REST answers 202
// when Unconfirmed reports true (contract 7.1).
type Uncertain interface{ Unconfirmed() bool }

// Ruler is an argument struct with rules that its tags cannot say: bytes
// instead of characters, one argument that needs another. Rules runs on a
// decoded value to check it and on a zero value to describe it.
//
// Tags of an argument struct:
//
//	path:"assetId"          a path argument (an argument like any other in MCP)
//	query:"status"          a query parameter
//	json:"message"          a member of the body
//	rule:"required notblank visible trimmed line lines maxchars=4096 maxbytes=32 minchars=4 email time day package minitems=1 maxitems=20
//	      min=0 max=100 default=20 enum=A|B secret"
//	only:"REST"             the other surfaces do not take it
//	doc:"Text shown on the lock screen."
//	example:"Please call the office."    (for descriptions; a valid value, JSON unless it is a string)
//
// Value rules on a slice bind each element; minitems and maxitems its length.
// A nested struct, or a slice of them, may be a Ruler of its own. Null for an
// optional member means that it is absent; elsewhere it is refused. Optional
// members that must tell absent from empty are pointers.
type Ruler interface{ Rules(r *Rules) }

// Rules collects an argument struct's own rules.
type Rules struct {
	plan   *plan // while the struct is described
	all    []Rule
	faults []fault.Field
}

// Rule is one rule in words, for the schema.
type Rule struct{ Field, Text string }

// Must states a rule about a field ("wifiPassword", "needs wifiSsid") and
// whether the value at hand keeps it.
func (r *Rules) Must(field, text string, kept bool) {
	r.all = append(r.all, Rule{field, text})
	if !kept {
		r.faults = append(r.faults, fault.Field{Field: field, Message: text})
	}
}

// OneOf gives a field its values, where a tag would repeat what is listed elsewhere.
func (r *Rules) OneOf(field string, values func() []string) {
	if r.plan != nil {
		r.plan.fields[r.plan.index[field]].rule.enum = values()
	}
}

// AtMost limits the length of a list in the same way.
func (r *Rules) AtMost(field string, entries func() int) {
	if r.plan != nil {
		r.plan.fields[r.plan.index[field]].rule.maxItems = entries()
	}
}

// Registry holds every operation, in the order of their definition.
type Registry struct{ operations []*Operation }

// All returns the operations.
func (r *Registry) All() []*Operation { return r.operations }

// Add adds an operation of another registry.
func (r *Registry) Add(o *Operation) { r.operations = append(r.operations, o) }

// Find returns the operation of a name, or nil.
func (r *Registry) Find(name string) *Operation {
	for _, o := range r.operations {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// Rehearsal returns a registry with the same declarations whose handlers are
// all h. With it a test drives a surface through every ending of every
// operation.
func (r *Registry) Rehearsal(h func(context.Context, *Operation, Call) (any, error)) *Registry {
	copied := &Registry{}
	for _, o := range r.operations {
		twin := *o
		twin.foresee = nil
		twin.run = func(ctx context.Context, call Call, _ any) (any, error) { return h(ctx, &twin, call) }
		copied.operations = append(copied.operations, &twin)
	}
	return copied
}

// Define adds an operation with its handler. A is the argument struct, R the
// result. It panics on a declaration that contradicts itself: that is a
// programmer's error and shows at start.
func Define[A, R any](r *Registry, o Operation, handler func(context.Context, Call, A) (R, error)) {
	o.args, o.result = compile(o.Name, reflect.TypeFor[A]()), reflect.TypeFor[R]()
	o.pathArgs = bracedNames(o.Path)
	o.mustAgree()
	if r.Find(o.Name) != nil {
		panic("operation " + o.Name + " is defined twice")
	}
	o.run = func(ctx context.Context, call Call, args any) (any, error) {
		return handler(ctx, call, *args.(*A))
	}
	r.operations = append(r.operations, &o)
}

// PathArgs are the names in braces of Path, in their order.
func (o *Operation) PathArgs() []string { return o.pathArgs }

func bracedNames(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if inner, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(inner, "}"))
		}
	}
	return names
}

// HasBody reports whether the operation takes members in a body.
func (o *Operation) HasBody() bool { return o.args.body }

// mustAgree panics unless the path's braces and the path arguments are the
// same, and nothing that has no body asks for members of one.
func (o *Operation) mustAgree() {
	declared := []string{}
	for _, f := range o.args.fields {
		if f.place == inPath {
			declared = append(declared, f.name)
		}
	}
	if braces := o.pathArgs; !slices.Equal(slices.Sorted(slices.Values(braces)), slices.Sorted(slices.Values(declared))) {
		panic(fmt.Sprintf("operation %s: the path holds %v, the arguments %v", o.Name, braces, declared))
	}
	if o.Ahead != NotAhead && (len(o.pathArgs) == 0 || o.pathArgs[0] != "assetId") {
		panic("operation " + o.Name + ": there is no asset to read ahead")
	}
	if o.Method == "GET" && o.HasBody() {
		panic("operation " + o.Name + ": a GET has no body")
	}
}
