package operation_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
)

// declared defines an operation with arguments of A and returns the panic.
func declared[A any](o operation.Operation) (problems string) {
	defer func() {
		if cause := recover(); cause != nil {
			problems = cause.(string)
		}
	}()
	var r operation.Registry
	operation.Define(&r, o, func(context.Context, operation.Call, A) (int, error) { return 0, nil })
	return ""
}

type bad[T any] struct {
	A T `json:"a" rule:"required"`
}

func TestDefine_ContradictionsPanic(t *testing.T) {
	t.Parallel()
	at := func(path string) operation.Operation {
		return operation.Operation{Name: "do_it", Method: "POST", Path: path}
	}
	body, path := at("/x"), at("/x/{a}")
	ahead, other := body, path
	ahead.Ahead, other.Ahead = operation.AheadToShow, operation.AheadToShow
	get := operation.Operation{Name: "do_it", Method: "GET", Path: "/x"}
	for name, problems := range map[string]string{
		"not a struct": declared[int](body),
		"no tag": declared[struct {
			A string
		}](body),
		"ignored": declared[struct {
			A string `json:"-"`
		}](body),
		"two places": declared[struct {
			A string `json:"a" query:"a"`
		}](body),
		"names differ in case": declared[struct {
			A string `json:"a"`
			B string `json:"A"`
		}](body),
		"unknown rule": declared[struct {
			A string `json:"a" rule:"maxchar=4"`
		}](body),
		"no number": declared[struct {
			A string `json:"a" rule:"maxchars=x"`
		}](body),
		"text rule on a number": declared[struct {
			A int `json:"a" rule:"notblank"`
		}](body),
		"number rule on text": declared[struct {
			A string `json:"a" rule:"min=1"`
		}](body),
		"items of no list": declared[struct {
			A string `json:"a" rule:"maxitems=1"`
		}](body),
		"line of a number": declared[struct {
			A int `json:"a" rule:"line"`
		}](body),
		"required with a default": declared[struct {
			A string `json:"a" rule:"required default=x"`
		}](body),
		"default against its rule": declared[struct {
			A int `json:"a" rule:"min=1 default=0"`
		}](body),
		"default of a pointer": declared[struct {
			A *int `json:"a" rule:"default=0"`
		}](body),
		"path not in the path": declared[struct {
			A string `path:"a"`
		}](body),
		"brace without argument": declared[struct{}](path),
		"path argument with a rule": declared[struct {
			A string `path:"a" rule:"maxchars=3"`
		}](path),
		"path argument of another type": declared[struct {
			A int `path:"a"`
		}](path),
		"GET with a body": declared[bad[string]](get),
		"query list": declared[struct {
			A []int `query:"a"`
		}](get),
		"nested query": declared[struct {
			A struct {
				B string `query:"b"`
			} `json:"a"`
		}](body),
		"nested without a tag": declared[struct {
			A struct {
				B string `json:"b"`
			}
		}](body),
		"nested in a query": declared[struct {
			A change `query:"a"`
		}](get),
		"object in a query": declared[struct {
			A operation.Object `query:"a"`
		}](get),
		"time of a number": declared[struct {
			A int `json:"a" rule:"time"`
		}](body),
		"day of a number": declared[struct {
			A int `json:"a" rule:"day"`
		}](body),
		"default of a list": declared[struct {
			A []string `json:"a" rule:"default=x"`
		}](body),
		"no asset to read ahead": declared[struct{}](ahead),
		"another id to read ahead": declared[struct {
			A string `path:"a"`
		}](other),
		"map":              declared[bad[map[string]string]](body),
		"float":            declared[bad[float64]](body),
		"list of lists":    declared[bad[[][]string]](body),
		"list of pointers": declared[bad[[]*string]](body),
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(problems, "do_it") {
				t.Errorf("%s: panic %q", name, problems)
			}
		})
	}
	if problems := declared[bad[[]string]](body); problems != "" {
		t.Errorf("a good declaration: %s", problems)
	}
}

// A struct of arguments has at most 64 fields.
func TestDefine_MostFields(t *testing.T) {
	t.Parallel()
	compiles := func(n int) (panicked any) {
		defer func() { panicked = recover() }()
		var fields []reflect.StructField
		for i := range n {
			fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[string](),
				Tag: reflect.StructTag(fmt.Sprintf(`json:"f%d"`, i))})
		}
		operation.Compile("do_it", reflect.StructOf(fields))
		return nil
	}
	if few, many := compiles(64), compiles(65); few != nil || many == nil {
		t.Errorf("64 fields: panic %v; 65 fields: panic %v, want one of these", few, many)
	}
}

func TestDefine_TwicePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two operations of one name")
		}
	}()
	var r operation.Registry
	for range 2 {
		operation.Define(&r, operation.Operation{Name: "do_it", Method: "POST", Path: "/x"},
			func(context.Context, operation.Call, struct{}) (int, error) { return 0, nil })
	}
}

type documented struct {
	AssetID string `path:"assetId" doc:"The asset."`
}

// sound is a declaration that Audit has nothing to say about.
func sound() operation.Operation {
	return operation.Operation{Name: "reboot_device", Title: "Restart", Description: "Restarts one fully managed device now.",
		Method: "POST", Path: "/assets/{assetId}/commands/reboot", Needs: access.DevicesCommand | access.DevicesRead,
		Gate: access.DeviceCommands, Budget: operation.AfterValidation, Dialect: operation.Commands, Effect: operation.Writing,
		Faults: []fault.Code{fault.NotFound, fault.Unavailable}}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	audit := func(change func(*operation.Operation)) []string {
		var r operation.Registry
		o := sound()
		change(&o)
		operation.DefineExplained(&r, o, func(context.Context, operation.Call, documented) (int, error) { return 0, nil },
			func(context.Context, operation.Call, documented) (operation.Forecast, error) {
				return operation.Forecast{}, nil
			})
		return operation.Audit(&r)
	}
	if problems := audit(func(*operation.Operation) {}); len(problems) > 0 {
		t.Errorf("a sound declaration: %v", problems)
	}
	for name, change := range map[string]func(*operation.Operation){
		"a name in capitals":        func(o *operation.Operation) { o.Name = "RebootDevice" },
		"no title":                  func(o *operation.Operation) { o.Title = "" },
		"no sentence":               func(o *operation.Operation) { o.Description = "Reboot" },
		"no permission":             func(o *operation.Operation) { o.Needs = 0 },
		"no gate":                   func(o *operation.Operation) { o.Gate = access.NoGate },
		"another gate":              func(o *operation.Operation) { o.Gate = access.PolicyChanges },
		"destroys without its gate": func(o *operation.Operation) { o.Effect, o.Gate = operation.Destroying, access.NoGate },
		"destructive, yet writes": func(o *operation.Operation) {
			o.Needs, o.Gate = access.DevicesCommandDestructive, access.DestructiveCommands
		},
		"writes for free":              func(o *operation.Operation) { o.Budget = operation.Free },
		"writes by PUT":                func(o *operation.Operation) { o.Method = "PUT" },
		"reads by POST":                func(o *operation.Operation) { o.Effect = operation.Reading },
		"spends too early":             func(o *operation.Operation) { o.Budget = operation.BeforeValidation },
		"the dialect of reads":         func(o *operation.Operation) { o.Dialect = operation.Reads },
		"a fault of another dialect":   func(o *operation.Operation) { o.Faults = append(o.Faults, fault.StaleProposal) },
		"a fault of the pipeline":      func(o *operation.Operation) { o.Faults = append(o.Faults, fault.Forbidden) },
		"a fault twice":                func(o *operation.Operation) { o.Faults = append(o.Faults, fault.NotFound) },
		"an id that is always found":   func(o *operation.Operation) { o.Faults = nil },
		"unconfirmed by a plain value": func(o *operation.Operation) { o.Unconfirmed = true },
	} {
		t.Run(name, func(t *testing.T) {
			if problems := audit(change); len(problems) == 0 {
				t.Errorf("%s: nothing said", name)
			}
		})
	}
}

func TestAudit_WholeService(t *testing.T) {
	t.Parallel()
	for _, complaint := range operation.Audit(servertest.New(t).Start().Registry()) {
		t.Error(complaint)
	}
}

func TestAudit_Arguments(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	o := sound()
	operation.Define(&r, o, func(context.Context, operation.Call, struct {
		AssetID string `path:"assetId"`
	}) (int, error) {
		return 0, nil
	})
	o.Name = "reboot_again"
	operation.Define(&r, o, func(context.Context, operation.Call, documented) (int, error) { return 0, nil })
	o.Name, o.Path = "send_text", "/assets/{assetId}/commands/text"
	operation.Define(&r, o, func(context.Context, operation.Call, unruly) (int, error) { return 0, nil })
	problems := strings.Join(operation.Audit(&r), "\n")
	for _, want := range []string{"assetId has no doc", "reboot_again: it is at", "a rule speaks of nothing",
		"its own example is refused"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not said in\n%s", want, problems)
		}
	}
}

// unruly has a rule that its own example breaks, about an argument that is not there.
type unruly struct {
	AssetID string `path:"assetId" doc:"The asset."`
	Text    string `json:"text" rule:"required" doc:"Text."`
}

func (u unruly) Rules(r *operation.Rules) { r.Must("nothing", "must be there", u.Text == "") }
