package operation

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

var nameShape = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)

// faultsOf lists the codes that the handlers of a dialect may end in, beside
// the pipeline's own (contract 7.1 to 7.5).
var faultsOf = map[Dialect][]fault.Code{
	Reads:        {fault.NotFound, fault.CursorExpired, fault.Unavailable},
	FirstFour:    {fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable},
	Commands:     {fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable},
	Policies:     {fault.NotFound, fault.Unsupported, fault.NotPending, fault.StaleProposal, fault.Refused, fault.ConfirmationRequired},
	Provisioning: {fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider},
}

// gateOf pairs each permission to change something with the company setting
// that goes with it (contract 5.4).
var gateOf = map[access.Permission]access.Gate{
	access.DevicesCommand:            access.DeviceCommands,
	access.DevicesCommandDestructive: access.DestructiveCommands,
	access.PoliciesWrite:             access.PolicyChanges,
	access.Provisioning:              access.ProvisioningGate,
}

// Audit returns everything in the registry's declarations that contradicts
// itself or the contract, for a test to insist that there is nothing.
func Audit(r *Registry) []string {
	a := audit{routes: map[string]string{}}
	for _, o := range r.All() {
		a.operation = o
		a.naming()
		a.rights()
		a.spending()
		a.endings()
		a.arguments()
	}
	return a.complaints
}

type audit struct {
	operation  *Operation
	routes     map[string]string // method and path, to the name
	complaints []string
}

// insist notes a complaint unless ok.
func (a *audit) insist(ok bool, format string, args ...any) {
	if !ok {
		a.complaints = append(a.complaints, a.operation.Name+": "+fmt.Sprintf(format, args...))
	}
}

func (a *audit) naming() {
	o := a.operation
	a.insist(nameShape.MatchString(o.Name), "the name is not of the form verb_noun")
	a.insist(o.Title != "", "it has no title")
	a.insist(len(o.Description) >= 30 && strings.HasSuffix(strings.TrimSpace(o.Description), "."), "its description is not a full sentence")
	route := o.Method + " " + o.Path
	a.insist(a.routes[route] == "", "it is at %s, like %s", route, a.routes[route])
	a.routes[route] = o.Name
	a.insist(strings.HasPrefix(o.Path, "/"), "its path does not begin with a slash")
}

func (a *audit) rights() {
	o := a.operation
	a.insist((o.Needs != 0) == (o.Budget != Apart && !o.Open), "it needs no permission, or needs one although it is open or has an "+
		"allowance of its own")
	a.insist(o.Needs&^access.All == 0, "it needs an unknown permission")
	want := access.NoGate
	for permission, gate := range gateOf {
		if o.Needs.Has(permission) {
			want = gate
		}
	}
	a.insist(o.Gate == want, "its gate is %q, its permissions call for %q", o.Gate, want)
	a.insist(o.Effect != Destroying || o.Gate != access.NoGate, "it destroys without a gate")
	a.insist(!o.Needs.Has(access.DevicesCommandDestructive) || o.Effect == Destroying,
		"its permission says that it destroys, its effect does not")
}

func (a *audit) spending() {
	o := a.operation
	reads := o.Effect == Reading
	apart := o.Budget == Apart // it takes arguments of other operations, and changes nothing
	a.insist(apart == (o.Calls > 0), "it has an allowance of its own without calls, or calls without one")
	a.insist(!apart || reads, "an allowance of its own is for what reads")
	a.insist(reads == (o.Budget == Free || apart), "reads are free and everything else spends")
	a.insist(reads == (o.Method == "GET" || apart), "reads are GET and everything else is not")
	a.insist(o.Explains(), "it cannot be said what a call would do")
	a.insist(reads || o.Method == "POST" || o.Method == "PATCH", "its method is %s", o.Method)
	a.insist((o.Dialect == FirstFour) == (o.Budget == BeforeValidation), "the four older commands alone spend before validation")
	a.insist(o.Dialect != Reads || reads, "it speaks the dialect of reads")
	a.insist(!reads || !o.Created && !o.Unconfirmed, "a read creates nothing and leaves nothing unconfirmed")
	a.insist(!o.Unconfirmed || o.result.Implements(reflect.TypeFor[Uncertain]()), "its result cannot say that it is unconfirmed")
}

func (a *audit) endings() {
	o := a.operation
	for i, code := range o.Faults {
		a.insist(slices.Contains(faultsOf[o.Dialect], code), "its dialect does not know %s", code)
		a.insist(!slices.Contains(o.Faults[:i], code), "%s is listed twice", code)
	}
	a.insist(len(o.pathArgs) == 0 || slices.Contains(o.Faults, fault.NotFound), "it takes an id and cannot end in not_found")
}

func (a *audit) arguments() {
	a.documented(a.operation.args, "")
	fault := a.operation.Check(Flat(a.operation.FlatExample()))
	a.insist(fault == nil, "its own example is refused: %v (set example tags)", fault)
}

func (a *audit) documented(p *plan, path string) {
	for i := range p.fields {
		f := &p.fields[i]
		a.insist(f.doc != "", "%s has no doc", path+f.name)
		s := f.shape
		if s.elem != nil {
			s = *s.elem
		}
		if s.plan != nil {
			a.documented(s.plan, path+f.name+".")
		}
	}
	for _, rule := range p.rules {
		_, known := p.index[rule.Field]
		a.insist(known, "a rule speaks of %s, which is no argument", path+rule.Field)
	}
}

// Explains reports whether it can be said what a call would do: by a function of its
// own, or because the operation reads and can be run.
func (o *Operation) Explains() bool { return o.foresee != nil || o.Effect == Reading }
